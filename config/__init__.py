import gc

from config.celery import app as celery_app

__all__ = ["celery_app"]

# Python looks for reference cycles after 700 new objects. Rows and calls create hardly any, and the
# search took a tenth of a start and of a worker's time.
gc.set_threshold(20_000, 20, 50)
