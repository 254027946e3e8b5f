"""Models that refuse a parameter of ours: asked without it, or stopped at the first refusal."""

import pytest

from annotation.models import Project
from judging.engine import leasing
from judging.errors import Refused
from judging.models import Request
from judging.pins import Own
from judging.running import runs
from tests.builders import make_project
from tests.judging.builders_judging import make_endpoint, make_items, make_responses, make_run

NOBODY = "http://127.0.0.1:9/v1"


@pytest.mark.django_db
def test_a_known_family_is_asked_as_one_for_which_somebody_says_so(project: Project) -> None:
    make_items(project, 3)
    known = make_run(project, make_endpoint(NOBODY, model="gpt-5-mini"))
    told = make_endpoint(NOBODY, model="gpt-5-mini", parameters={"temperature": None})
    for run in (known, make_run(project, told)):
        runs.plan(run)
        assert run.sends() == {}
    # The very same requests, so that neither pays for what the other asked.
    assert Request.objects.count() == 3
    sent = leasing.lease(known.endpoint, "worker", 1, known.created_at).leased[0].body
    assert b"temperature" not in sent


@pytest.mark.django_db
def test_self_consistency_says_that_such_a_model_cannot_be_asked_so() -> None:
    project = make_project(task_type="error-detection")
    make_responses(project, ["error", "no_error"])
    slug, model = "detect-self-consistency", "claude-opus-4-7"
    endpoint = make_endpoint(NOBODY, provider="anthropic", model=model)
    with pytest.raises(Refused, match=r"claude-opus-4-7 does not take temperature = 0.5, with"):
        make_run(project, endpoint, slug)
    run = make_run(project, endpoint, slug, own=Own(parameters={"temperature": None}))
    assert run.sends() == {"max_tokens": 1024}
    # An unknown model is asked, and so is one of which somebody says that it takes it.
    assert make_run(project, make_endpoint(NOBODY), slug).sends() == {"temperature": 0.5}
    told = Own(parameters={"temperature": 0.7})
    assert make_run(project, endpoint, slug, own=told).sends()["temperature"] == 0.7
