"""The id of a request goes with the messages that it sends, so that a worker's lines carry it."""

from typing import Any

from celery.signals import before_task_publish, task_postrun, task_prerun

from operation import logs

HEADER = "request_id"


def connect() -> None:
    before_task_publish.connect(_send, dispatch_uid="operation.passing")
    task_prerun.connect(_take, dispatch_uid="operation.passing")
    task_postrun.connect(_end, dispatch_uid="operation.passing")


def _send(headers: dict[str, Any] | None = None, **kwargs: Any) -> None:
    if headers is not None:
        headers[HEADER] = logs.request_id()


def _take(task: Any, **kwargs: Any) -> None:
    logs.begin(request_id=getattr(task.request, HEADER, None) or "", task=task.name)


def _end(**kwargs: Any) -> None:
    logs.finish()
