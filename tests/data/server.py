"""A server on this machine that hands out files, whole or in the ways in which downloads go wrong."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Shop:
    """What the server has, and how it behaves."""

    files: dict[str, bytes] = field(default_factory=dict)
    manner: str = "well"
    """Or `breaks` (half of what is left, then silence), `truncates`, `tampers`, `lengthens`, `no-ranges`, `fails`."""
    url: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """(path, Range) of each request."""


@contextlib.contextmanager
def opened() -> Iterator[Shop]:
    shop = Shop()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _serve(self, shop)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    shop.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield shop
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _serve(handler: BaseHTTPRequestHandler, shop: Shop) -> None:
    wanted = handler.headers.get("Range")
    shop.asked.append((handler.path, wanted))
    content = shop.files.get(handler.path.lstrip("/"))
    if content is None or shop.manner == "fails":
        handler.send_error(404 if content is None else 503)
        return
    if shop.manner == "truncates":
        content = content[: len(content) // 2]
    if shop.manner == "tampers":
        content = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
    if shop.manner == "lengthens":
        content = content + b"more"
    start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and shop.manner != "no-ranges" else 0
    if start and start >= len(content):
        handler.send_error(416)
        return
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    handler.send_header("Content-Length", str(len(content) - start))
    handler.end_headers()
    left = content[start:]
    handler.wfile.write(left[: len(left) // 2] if shop.manner == "breaks" else left)
