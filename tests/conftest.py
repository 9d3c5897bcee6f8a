"""A test run that was started in the background ignores Ctrl-C, and so would all it starts."""

from __future__ import annotations

import signal
import threading

import pytest


@pytest.fixture(autouse=True)
def _ctrl_c() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
