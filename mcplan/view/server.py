"""A page served to this machine only.

meshcat's own server prints 127.0.0.1 but listens on all interfaces, and hangs when nobody reads its error pipe; this
one binds loopback, runs in a thread of the process, and answers only requests that name a loopback host (so that a
foreign web page cannot reach it through a name of its own that resolves to 127.0.0.1).
"""

import asyncio
import socket
import threading

import tornado.httpserver
import tornado.web

LOOPBACK = "127.0.0.1"


class PageServer:
    """Serve one page at ``server.url`` until ``close``; usable as a context manager.

    Parameters
    ----------
    text : the page.
    port : TCP port on 127.0.0.1; 0 takes a free one.

    Raises
    ------
    OSError
        When the port is taken.
    """

    def __init__(self, text: str, port: int = 0):
        listener = socket.create_server((LOOPBACK, port))
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self.url = f"http://{LOOPBACK}:{self.port}/"
        self._loop = asyncio.new_event_loop()
        application = tornado.web.Application([(r"/", _Page, {"text": text, "port": self.port})])

        def serve() -> None:
            asyncio.set_event_loop(self._loop)
            self._server = tornado.httpserver.HTTPServer(application)
            self._server.add_socket(listener)
            self._loop.run_forever()
            self._server.stop()
            self._loop.close()

        self._thread = threading.Thread(target=serve, name="mcplan page server", daemon=True)
        self._thread.start()

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
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> "PageServer":
        return self

    def __exit__(self, *_) -> None:
        self.close()


class _Page(tornado.web.RequestHandler):
    def initialize(self, text: str, port: int) -> None:
        self.text, self.port = text, port

    def get(self) -> None:
        if self.request.host not in (f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"):
            raise tornado.web.HTTPError(403)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.finish(self.text)
