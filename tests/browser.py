"""Chromium by its own protocol: pages opened, clicked, pointed at and asked, at any size and theme.

The browser is driven through two pipes (``--remote-debugging-pipe``), so that nothing but the
browser itself is needed. Tests that need it are skipped where it is not installed.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
]
# The browser reads commands from descriptor 3 and answers on 4, whatever ours are called.
LAUNCH = "import os, sys; os.dup2({}, 3); os.dup2({}, 4); os.execv(sys.argv[1], sys.argv[1:])"


class Browser:
    """One page of a browser; ``complaints`` are errors and warnings of its console."""

    def __init__(self, commands: int, answers: int) -> None:
        self.commands, self.answers = commands, answers
        self.numbers, self.buffer = itertools.count(1), b""
        self.complaints: list[str] = []
        self.session: str | None = None
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self.numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def receive(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            read = os.read(self.answers, 1 << 20)
            assert read, "the browser has ended"
            self.buffer += read
        message, _, self.buffer = self.buffer.partition(b"\0")
        answer = json.loads(message)
        self.note(answer.get("method"), answer.get("params", {}))
        return answer

    def note(self, method: str | None, event: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning"):
            self.complaints.append(str(event["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(event["entry"]["text"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, address: Path | str, width: int = 1280, dark: bool = False) -> None:
        """Load a file or an address in a window of this width and theme."""
        self.resize(width)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])
        self.loaded = False
        url = address.resolve().as_uri() if isinstance(address, Path) else address
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self.receive()

    def resize(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript on the page."""
        options = {"returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 30) -> Any:
        """The value of an expression once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.ask(f"(found => found instanceof Node || found)({expression})")
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"{expression} did not become true")

    def place(self, selector: str, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
        """A place within an element, which is scrolled to, in pixels of the window."""
        found = self.ask(
            f"(() => {{ const node = document.querySelector({json.dumps(selector)});"
            "node.scrollIntoView({block: 'center'}); const r = node.getBoundingClientRect();"
            f"return [r.left + {across} * r.width, r.top + {down} * r.height]; }})()"
        )
        return found[0], found[1]

    def point(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        """Move the mouse there."""
        x, y = self.place(selector, across, down)
        for step in (2.0, 0.0):
            self._mouse("mouseMoved", x - step, y)

    def click(self, selector: str) -> None:
        x, y = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(kind, x, y, button="left", clickCount=1)

    def drag(self, selector: str, start: float, end: float) -> None:
        """Press the mouse, move it across and release it; places are shares of the width."""
        x, y = self.place(selector, start)
        to, _ = self.place(selector, end)
        self._mouse("mouseMoved", x, y)
        self._mouse("mousePressed", x, y, button="left", clickCount=1)
        for share in (0.3, 0.7, 1.0):
            self._mouse("mouseMoved", x + share * (to - x), y, button="left", buttons=1)
        self._mouse("mouseReleased", to, y, button="left", clickCount=1)

    def _mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, path: Path, whole: bool = True) -> None:
        """The page as a PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile, ended when the block is left."""
    assert CHROMIUM is not None
    pairs = [os.pipe(), os.pipe()]
    try:
        (read, write), (answers, answer) = pairs
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}"]
        launcher = [sys.executable, "-c", LAUNCH.format(read, answer), *command]
        with subprocess.Popen(
            launcher, pass_fds=(read, answer), stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield Browser(write, answers)
            finally:
                process.terminate()
    finally:
        for end in itertools.chain(*pairs):
            os.close(end)
