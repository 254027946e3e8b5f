"""What gunicorn itself says is written as all else is, one JSON object a line. It finds this file
where it is started."""

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
