"""A receiver of webhooks: a real HTTP server on loopback that keeps what it gets."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Served = tuple[dict[str, str], bytes]


class Receiver:
    """An HTTP server on loopback that keeps what it gets. It answers with the next of `answers`,
    pairs of status and text, and with 204 once there are none."""

    def __init__(self) -> None:
        self.got: list[Served] = []
        self.answers: list[tuple[int, str]] = []
        self.pause = 0.0
        self.headers: dict[str, str] = {}
        self.hangs_up = False
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append((headers, body))
                time.sleep(receiver.pause)
                status, text = receiver.answers.pop(0) if receiver.answers else (204, "")
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                if status in (301, 307):
                    self.send_header("Location", receiver.address)
                self.end_headers()
                self.wfile.write(text.encode())
                self.close_connection |= receiver.hangs_up

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def types(self) -> list[str]:
        return [json.loads(body)["type"] for _, body in self.got]

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.got]

    def data(self, number: int = -1) -> Any:
        return json.loads(self.got[number][1])["data"]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
