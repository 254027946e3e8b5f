import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()

# Django imports views with the first request, which would wait seconds for it in each new worker,
# and all that come meanwhile with it. So a worker takes requests when it has them.
get_resolver().url_patterns  # noqa: B018  (made by being looked at)

# What start-up made lives as long as the process: to look through it all for what can be dropped
# made every second page of results wait for 30 ms.
gc.freeze()
