import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()

# Django imports views at the first request, which would wait for seconds in each new worker, with
# all requests that arrive meanwhile. So a worker imports them before it accepts requests.
get_resolver().url_patterns  # noqa: B018  (accessing it imports the views)

# Objects from start-up live as long as the process; scanning all of them in garbage collections
# delayed every second results page by 30 ms.
gc.freeze()
