"""The API of what leaves for a paper: the methods in words."""

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access
from annotation.api.answering import PROBLEMS
from judging.api.results import RUN_PARAMETER
from judging.paper import methods
from judging.results import figures


class MethodsSerializer(serializers.Serializer[methods.Paragraph]):
    """How figures came to be: paragraphs of data, people, each run and figures; and for LaTeX."""

    paragraphs = serializers.ListField(child=serializers.CharField())
    text = serializers.CharField()
    latex = serializers.CharField()


@extend_schema(parameters=[RUN_PARAMETER], responses={200: MethodsSerializer, **PROBLEMS})
@api_view(["GET"])
def said(request: Request, slug: str) -> Response:
    """How the figures of the chosen runs came to be, in words; every number is counted anew."""
    member = access.member_for(request, slug, right="results")
    try:
        runs = figures.chosen(member.project, request.query_params)
    except figures.UnknownRun as problem:
        raise Http404(str(problem)) from problem
    return Response(MethodsSerializer(methods.paragraph(member.project, runs)).data)


urlpatterns = [path("projects/<slug:slug>/methods/", said, name="api-methods")]
