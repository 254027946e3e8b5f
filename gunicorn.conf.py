"""Settings of gunicorn, which finds this file where it is started."""

# By default a request may say in these headers which part of its path is the site's own prefix, and
# its sender would choose where links lead in pages that a process renders once.
forwarder_headers = ""
# What gunicorn itself says is written as all else is, one JSON object a line.
logconfig_dict = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "operation.logs.JSONFormatter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "gunicorn.error": {"handlers": ["console"], "level": "INFO", "propagate": False},
        # Each request has a line of ours.
        "gunicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
    },
}
