import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("blindspot")
app.config_from_object("django.conf:settings", namespace="CELERY")
# A slice is one event loop that waits for evaluators, so threads serve as well as processes, and
# they see the stop flag of the process.
app.conf.worker_pool = "threads"
app.conf.worker_concurrency = 4
# Named, not imported: models can be imported only after this module.
app.steps["worker"].add("judging.jobs.worker:WorkLoopStep")
app.autodiscover_tasks()
