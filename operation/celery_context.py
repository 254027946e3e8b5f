"""Pass request ids to workers in message headers, so that their log lines include them."""

from typing import Any

from celery.signals import before_task_publish, task_postrun, task_prerun

from operation import logs

ID_HEADER = "request_id"


def connect_signals() -> None:
    """Connect the receivers. Repeated calls connect them only once."""
    before_task_publish.connect(_add_request_id, dispatch_uid="operation.celery_context")
    task_prerun.connect(_begin_task, dispatch_uid="operation.celery_context")
    task_postrun.connect(_end_task, dispatch_uid="operation.celery_context")


def _add_request_id(headers: dict[str, Any] | None = None, **kwargs: Any) -> None:
    if headers is not None:
        headers[ID_HEADER] = logs.current_request_id()


def _begin_task(task: Any, **kwargs: Any) -> None:
    logs.begin_context(request_id=getattr(task.request, ID_HEADER, None) or "", task=task.name)


def _end_task(**kwargs: Any) -> None:
    logs.end_context()
