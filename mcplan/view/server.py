"""HTTP_PORT and WebSocket server of one page, on loopback only.

meshcat's own server prints 127.0.0.1 but listens on all interfaces, and hangs when its error pipe is not read. This
one binds loopback and runs in a thread. It answers only requests that name a loopback host: a foreign web page cannot
reach it through a DNS name that resolves to 127.0.0.1 (DNS rebinding).
"""

import asyncio
import contextlib
import os
import socket
import threading

import tornado.httpserver
import tornado.web
import tornado.websocket

LOOPBACK = "127.0.0.1"
"""Address that only this machine can reach."""

HTTP_PORT = 80
"""Default port of HTTP_PORT."""


class PageServer:
    """Serve one page at ``server.url`` until ``close``; usable as a context manager.

    Parameters
    ----------
    text : HTML of the page.
    port : TCP port on 127.0.0.1; 0 takes a free one.
    frames : whether the server offers pushed frames at ``/frames``.

    Raises
    ------
    OSError
        The port is taken.
    """

    def __init__(self, text: str, port: int = 0, frames: bool = False):
        listener = socket.create_server((LOOPBACK, port))
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self.url = f"http://{LOOPBACK}:{self.port}/"
        self._loop = asyncio.new_event_loop()
        self._connections: set[_Frames] = set()
        self._frame = b""
        routes: list[tuple] = [(r"/", _Page, {"text": text, "port": self.port})]
        routes += [(r"/frames", _Frames, {"server": self})] if frames else []
        application = tornado.web.Application(routes, websocket_ping_interval=20)

        def serve() -> None:
            asyncio.set_event_loop(self._loop)
            self._server = tornado.httpserver.HTTPServer(application)
            self._server.add_socket(listener)
            self._loop.run_forever()
            self._server.stop()
            self._loop.close()

        self._thread = threading.Thread(target=serve, name="mcplan page server", daemon=True)
        self._thread.start()

    def push(self, frame: bytes) -> None:
        """Send a frame to every page that is ready; a page that connects later starts with the newest frame."""
        with contextlib.suppress(RuntimeError):  # the server has been closed
            self._loop.call_soon_threadsafe(self._send_to_all, frame)

    def _send_to_all(self, frame: bytes) -> None:
        self._frame = frame
        for connection in tuple(self._connections):
            connection.send_newest()

    def wait(self) -> None:
        """Block until the server is closed or the user interrupts."""
        try:
            while self._thread.is_alive():
                self._thread.join(0.5)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop serving."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(5.0)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    async def _end(self) -> None:
        """Deliver the last frame before closing."""
        await asyncio.gather(*(connection.close_after_frame() for connection in tuple(self._connections)))

    def __enter__(self) -> "PageServer":
        return self

    def __exit__(self, *_) -> None:
        self.close()


class _Page(tornado.web.RequestHandler):
    """Answer to a request of the page."""

    def initialize(self, text: str, port: int) -> None:
        self.text, self.port = text, port

    def get(self) -> None:
        if self.request.host not in hosts(self.port):
            raise tornado.web.HTTPError(403)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.finish(self.text)


class _Frames(tornado.websocket.WebSocketHandler):
    """Connection to a page: sends one frame at a time, always the newest; a slow page skips frames."""

    def initialize(self, server: PageServer) -> None:
        self.server, self.sent = server, b""
        self.sending: asyncio.Future[None] | None = None

    def prepare(self) -> None:
        if self.request.host not in hosts(self.server.port):
            raise tornado.web.HTTPError(403)

    def check_origin(self, origin: str) -> bool:
        return origin.partition("://")[2] in hosts(self.server.port)

    def open(self) -> None:
        self.server._connections.add(self)
        self.send_newest()

    def on_message(self, message: str | bytes) -> None:
        """Ignore messages from pages."""

    def on_close(self) -> None:
        self.server._connections.discard(self)

    def send_newest(self) -> None:
        """Start to send the newest frame, unless a frame is being sent."""
        if self.sending is None and self.server._frame and self.server._frame is not self.sent:
            self.sending = asyncio.ensure_future(self._send())

    async def _send(self) -> None:
        with contextlib.suppress(tornado.websocket.WebSocketClosedError):
            while self.sent is not self.server._frame:
                self.sent = self.server._frame
                await self.write_message(self.sent, binary=True)
        self.sending = None

    async def close_after_frame(self) -> None:
        """Wait for the frame that is being sent, then close."""
        if self.sending is not None:
            await asyncio.wait([self.sending], timeout=1.0)
        self.close()


def hosts(port: int) -> tuple[str, ...]:
    """Return the accepted host names; browsers omit the default port of HTTP_PORT."""
    with_port = f"{LOOPBACK}:{port}", f"localhost:{port}"
    return (*with_port, LOOPBACK, "localhost") if port == HTTP_PORT else with_port


def address_text(url: str) -> str:
    """Return the address as text, over SSH with the command for a tunnel."""
    text = f"{url}   (this machine only)"
    if "SSH_CONNECTION" in os.environ:
        port = url.rstrip("/").rsplit(":", 1)[1]
        tunnel = f"ssh -N -L {port}:127.0.0.1:{port} {socket.gethostname()}"
        text += f"\n  from your machine: {tunnel}   then open {url}"
    return text
