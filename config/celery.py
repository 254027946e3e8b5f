import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("blindspot")
app.config_from_object("django.conf:settings", namespace="CELERY")
# A slice is one event loop that waits for evaluators. So threads work as well as processes, and
# threads can see the process's stop flag.
app.conf.worker_pool = "threads"
app.conf.worker_concurrency = 4
# Given as a string: models can only be imported after this module.
app.steps["worker"].add("judging.jobs.worker:WorkLoopStep")
app.autodiscover_tasks()
