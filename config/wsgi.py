import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()

# Django imports views at the first request. In each new worker, the first request and all that
# arrive meanwhile would have to wait for seconds. So a worker imports the views before it accepts
# requests.
get_resolver().url_patterns  # noqa: B018  (accessing it imports the views)

# Objects from start-up live as long as the process. Garbage collections that scanned all of them
# delayed every second results page by 30 ms.
gc.freeze()
