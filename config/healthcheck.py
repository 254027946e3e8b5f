"""The health check of a container. `python config/healthcheck.py PORT [PART...]` exits with 0 if
/readyz answers 200. If PARTs are given, only these are checked.

The request has the site's own host name, since the application refuses other names. It claims to
have come over TLS, as requests through the proxy do. Run as a file, this module imports nothing
else of the program.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlencode

# In seconds. docker-compose.yml allows a little more time, so that the check can end by itself.
TIMEOUT_SECONDS = 4


def main(port: int, parts: list[str]) -> int:
    """Return the exit code: 0 if /readyz on this machine answers 200; otherwise 1, also if there is
    no answer."""
    host = os.environ.get("ALLOWED_HOSTS", "localhost").split(",")[0].strip().lstrip(".")
    path = "/readyz?" + urlencode([("only", part) for part in parts])
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path, headers={"Host": host, "X-Forwarded-Proto": "https"})
        return int(connection.getresponse().status != 200)
    except (OSError, HTTPException):
        return 1
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
