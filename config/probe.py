"""The health check of a container: `python config/probe.py PORT` exits 0 if /healthz answers 200.

It asks under the site's own name, since the application refuses all others, and says that the
visitor came by TLS, as the proxy in front would. Run as a file, it loads nothing else.
"""

import os
import sys
from http.client import HTTPConnection, HTTPException


def main(port: int) -> int:
    host = os.environ.get("ALLOWED_HOSTS", "localhost").split(",")[0].strip().lstrip(".")
    connection = HTTPConnection("127.0.0.1", port, timeout=4)
    try:
        connection.request("GET", "/healthz", headers={"Host": host, "X-Forwarded-Proto": "https"})
        return int(connection.getresponse().status != 200)
    except (OSError, HTTPException):
        return 1
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
