"""A browser of few words, for deployments that tests start."""

import http.client
import re
from dataclasses import dataclass, field
from urllib.parse import urlencode

SITE = "blindspot.example"


@dataclass
class Visitor:
    """A browser behind the deployment's proxy, which says that it came by TLS."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        return self._ask("GET", path, {}, headers)

    def post(self, path: str, **fields: str) -> tuple[int, str]:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.get(path)[1])
        assert token, path
        return self._ask("POST", path, fields | {"csrfmiddlewaretoken": token[1]})

    def _ask(
        self, method: str, path: str, fields: dict[str, str], more: dict[str, str] | None = None
    ) -> tuple[int, str]:
        headers = (more or {}) | {
            "Host": SITE,
            "X-Forwarded-Proto": "https",
            "Referer": f"https://{SITE}{path}",
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, urlencode(fields) if fields else None, headers)
        answer = connection.getresponse()
        # Over TLS alone for a year, whatever is answered.
        tls = answer.headers["Strict-Transport-Security"]
        assert "max-age=31536000; includeSubDomains" in str(tls), (path, answer.status)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = cookie.partition(";")[0].partition("=")
            if "Max-Age=0" in cookie:
                self.cookies.pop(name, None)
                continue
            assert "Secure" in cookie
            self.cookies[name] = value
        text = answer.read().decode("utf-8")
        connection.close()
        return answer.status, text
