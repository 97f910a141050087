"""Headless Chromium with one page, driven over a pipe by its DevTools protocol, without further packages."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcplan.errors import JobFailed

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Executables to search for on the path, in this order."""

FLAGS = (
    "--headless", "--remote-debugging-pipe", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--hide-scrollbars", "--no-first-run", "--no-default-browser-check", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio",
)  # fmt: skip

TIMEOUT_S = 60.0
"""s: maximum time until the browser answers."""


class BrowserFailed(JobFailed):
    """The browser did not start, did not answer, or a script in its page failed."""


def find_chromium() -> str | None:
    """Return the path of a usable Chromium, or None."""
    if sys.platform == "win32":  # the pipe needs inherited file descriptors
        return None
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One page in a headless Chromium; a context manager.

    Attributes
    ----------
    errors : exceptions in the page, and errors on its console.
    requests : addresses that the page requested, other than its own file and embedded data.

    Parameters
    ----------
    path : of the browser.
    size : (width, height) of the page, pixels.
    """

    def __init__(self, path: str, size: tuple[int, int] = (1280, 800)):
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._count, self._session, self._rest, self._url = 0, "", b"", ""
        self._home = tempfile.TemporaryDirectory(prefix="mcplan-browser-", ignore_cleanup_errors=True)
        down, self._out = os.pipe()
        self._in, up = os.pipe()
        try:
            self._process = _start(path, size, self._home.name, down, up)
        finally:
            os.close(down)
            os.close(up)
        try:
            target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
            attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
            self.become(size)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Chromium":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        for descriptor in (self._out, self._in):
            with suppress(OSError):
                os.close(descriptor)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._home.cleanup()

    def become(self, size: tuple[int, int], phone: bool = False, dark: bool = False) -> None:
        """Emulate a screen of a given size, a phone (touch, twice the pixels), or a dark colour scheme."""
        scale, (width, height) = 2 if phone else 1, size
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, text: str, ready: str, fragment: str = "", within: float = TIMEOUT_S) -> None:
        """Open a page from its text, at a fragment, and wait until the expression ``ready`` is true.

        Raises
        ------
        BrowserFailed
            The page is not ready within ``within`` s.
        """
        file = Path(self._home.name) / "page.html"
        file.write_text(text, encoding="utf-8")
        self._url = file.as_uri()
        self.call("Page.navigate", url="about:blank")  # a change of the fragment alone would not reload
        self.call("Page.navigate", url=self._url + (f"#{fragment}" if fragment else ""))
        end = time.monotonic() + within
        while not self.js(f"location.protocol === 'file:' && document.readyState === 'complete' && Boolean({ready})"):
            if self.errors or time.monotonic() > end:
                reason = "; ".join(self.errors) or f"not ready within {within:g} s"
                raise BrowserFailed(f"the page failed: {reason}")
            time.sleep(0.03)

    def js(self, expression: str) -> Any:
        """Return the value of an expression in the page; a promise is awaited.

        Raises
        ------
        BrowserFailed
            The script has failed.
        """
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            message = details.get("exception", {}).get("description") or details.get("text", "")
            raise BrowserFailed(f"a script in the page failed: {message.splitlines()[0]}")
        return answer["result"].get("value")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command of the protocol and return its answer.

        Raises
        ------
        BrowserFailed
            The browser refuses the command or does not answer.
        """
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        try:
            _write(self._out, json.dumps(message).encode() + b"\0")
        except OSError as error:
            raise BrowserFailed(f"the browser has ended: {error.strerror}") from error
        while True:
            answer = self._read(method)
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise BrowserFailed(f"{method}: {answer['error'].get('message', 'refused')}")
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        """Store errors and external requests of the page."""
        method, what = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details.get("text", "error"))
        elif method == "Runtime.consoleAPICalled" and what["type"] == "error":
            self.errors.append(" ".join(str(item.get("value", item.get("description"))) for item in what["args"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] == "error":
            self.errors.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = what["request"]["url"]
            if url != self._url and not url.startswith(("data:", "blob:", "about:")):
                self.requests.append(url)

    def _read(self, method: str) -> dict[str, Any]:
        parts = [self._rest]
        while b"\0" not in parts[-1]:
            if not select.select([self._in], [], [], TIMEOUT_S)[0]:
                raise BrowserFailed(f"the browser did not answer {method} within {TIMEOUT_S:g} s")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise BrowserFailed(f"the browser ended before it answered {method}")
            parts.append(part)
        message, _, self._rest = b"".join(parts).partition(b"\0")
        return json.loads(message)


def _start(path: str, size: Sequence[int], home: str, down: int, up: int) -> subprocess.Popen:
    """Start a browser in a new process group; it reads commands at descriptor 3 and answers at 4."""
    import fcntl

    # above 4, so that neither is overwritten before it is copied
    reading, writing = (fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in (down, up))
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox refuses root

    def hand_over() -> None:
        os.dup2(reading, 3)
        os.dup2(writing, 4)

    try:
        return subprocess.Popen(
            [path, *FLAGS, *sandbox, f"--user-data-dir={home}", f"--window-size={size[0]},{size[1]}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=hand_over, pass_fds=(3, 4), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise BrowserFailed(f"{path} cannot be started: {error.strerror}") from error
    finally:
        os.close(reading)
        os.close(writing)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
