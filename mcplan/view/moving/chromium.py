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
"""Command line options: no window, commands over a pipe, software rendering, no further services."""

TIMEOUT_S = 60.0
"""Maximum time until the browser answers (s)."""


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
    path : path of the browser.
    size : (width, height) of the page, pixels.
    """

    def __init__(self, path: str, size: tuple[int, int] = (1280, 800)):
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._count, self._session, self._unread, self._url = 0, "", b"", ""
        self._profile = tempfile.TemporaryDirectory(prefix="mcplan-browser-", ignore_cleanup_errors=True)
        command_reader, self._command_writer = os.pipe()
        self._answer_reader, answer_writer = os.pipe()
        try:
            self._process = _start(path, size, self._profile.name, command_reader, answer_writer)
        finally:
            os.close(command_reader)
            os.close(answer_writer)
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
        for descriptor in (self._command_writer, self._answer_reader):
            with suppress(OSError):
                os.close(descriptor)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._profile.cleanup()

    def become(self, size: tuple[int, int], phone: bool = False, dark: bool = False) -> None:
        """Emulate a screen of a given size, a phone (touch, twice the pixels), or a dark colour scheme."""
        scale, (width, height) = 2 if phone else 1, size
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, text: str, ready: str, fragment: str = "", timeout: float = TIMEOUT_S) -> None:
        """Open a page from its text, at a fragment, and wait until the expression ``ready`` is true.

        Raises
        ------
        BrowserFailed
            The page is not ready within ``timeout`` s.
        """
        file = Path(self._profile.name) / "page.html"
        file.write_text(text, encoding="utf-8")
        self._url = file.as_uri()
        self.call("Page.navigate", url="about:blank")  # a change of the fragment alone would not reload
        self.call("Page.navigate", url=self._url + (f"#{fragment}" if fragment else ""))
        end = time.monotonic() + timeout
        while not self.js(f"location.protocol === 'file:' && document.readyState === 'complete' && Boolean({ready})"):
            if self.errors or time.monotonic() > end:
                reason = "; ".join(self.errors) or f"not ready within {timeout:g} s"
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
            _write(self._command_writer, json.dumps(message).encode() + b"\0")
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
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details.get("text", "error"))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.errors.append(" ".join(str(item.get("value", item.get("description"))) for item in parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if url != self._url and not url.startswith(("data:", "blob:", "about:")):
                self.requests.append(url)

    def _read(self, method: str) -> dict[str, Any]:
        """Return the next message of the browser."""
        parts = [self._unread]
        while b"\0" not in parts[-1]:
            if not select.select([self._answer_reader], [], [], TIMEOUT_S)[0]:
                raise BrowserFailed(f"the browser did not answer {method} within {TIMEOUT_S:g} s")
            part = os.read(self._answer_reader, 1 << 20)
            if not part:
                raise BrowserFailed(f"the browser ended before it answered {method}")
            parts.append(part)
        message, _, self._unread = b"".join(parts).partition(b"\0")
        return json.loads(message)


def _start(path: str, size: Sequence[int], profile: str, command_reader: int, answer_writer: int) -> subprocess.Popen:
    """Start a browser in a new process group; it reads commands at descriptor 3 and answers at 4."""
    import fcntl

    # numbers from 10 on, so that neither descriptor is overwritten before it is copied
    command_copy, answer_copy = (
        fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in (command_reader, answer_writer)
    )
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox refuses root

    def set_descriptors() -> None:
        os.dup2(command_copy, 3)
        os.dup2(answer_copy, 4)

    try:
        return subprocess.Popen(
            [path, *FLAGS, *sandbox, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=set_descriptors, pass_fds=(3, 4), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise BrowserFailed(f"{path} cannot be started: {error.strerror}") from error
    finally:
        os.close(command_copy)
        os.close(answer_copy)


def _write(descriptor: int, data: bytes) -> None:
    """Write all of the data; one call may write a part only."""
    while data:
        data = data[os.write(descriptor, data) :]
