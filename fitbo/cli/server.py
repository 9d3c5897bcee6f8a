"""``fitbo watch``: the page of growing results, served to this machine alone.

It listens on 127.0.0.1 only and answers only requests that name it as their host, so that no page
of another site can read it by pointing its own name here. It reads, and writes nothing.

    GET /                  the page
    GET /state?since=V     204 if V is the newest version, else the newest as JSON
"""

from __future__ import annotations

import json
import secrets
import threading
import webbrowser
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from rich.console import Console

from fitbo.cli.codes import OK
from fitbo.cli.display import say
from fitbo.config.campaign import load
from fitbo.report.live import Board
from fitbo.report.page import policy

HOST = "127.0.0.1"
EVERY = 1.0  # seconds between two looks, of the server and of the page
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def watch(options: Namespace, console: Console, errors: Console) -> int:
    """Serve until Ctrl-C."""
    with serving(_board(Path(options.results)), options.port) as address:
        say(console, f"watching {options.results} at {address} (Ctrl-C ends it)")
        if options.open:
            webbrowser.open(address)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            say(console, "")
    return OK


def _board(path: Path) -> Board:
    """Of a YAML file the results that it has or will have, else those at the path."""
    token = secrets.token_hex(4)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        campaign = load(path)
        stated = {str(p.label): p.optimum for p in campaign.all_problems if p.optimum is not None}
        return Board([campaign.directory], token, stated, len(campaign.studies()))
    if not path.exists():
        raise ValueError(
            f"{path} must be a YAML file, a results folder or a journal, and there is none"
        )
    return Board([path], token)


@contextmanager
def serving(board: Board, port: int = 0) -> Iterator[str]:
    """Serve a board that is looked at again and again; its address."""
    try:
        server = Server((HOST, port), Handler)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ValueError(
            f"--port must be free, got {port}: {why}; --port 0 takes one that is"
        ) from None
    server.board, over = board, threading.Event()

    def follow() -> None:
        while not over.is_set():
            board.look()
            over.wait(EVERY)

    board.look()
    for work in (follow, server.serve_forever):
        threading.Thread(target=work, daemon=True).start()
    try:
        yield f"http://{HOST}:{server.server_port}/"
    finally:
        over.set()
        server.shutdown()
        server.server_close()


class Server(ThreadingHTTPServer):
    """The server and what it shows."""

    daemon_threads = True
    board: Board


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version, sys_version = "fitbo", ""

    def do_GET(self) -> None:
        port = self.server.server_port
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            self._answer(HTTPStatus.FORBIDDEN, "this address answers its own name only\n")
            return
        asked, state = urlsplit(self.path), self.server.board.state
        if asked.path == "/":
            self._answer(HTTPStatus.OK, state.html(EVERY), "text/html")
        elif asked.path == "/state":
            if parse_qs(asked.query).get("since") == [state.version]:
                self._answer(HTTPStatus.NO_CONTENT)
            else:
                text = json.dumps(state.plain(), ensure_ascii=False, allow_nan=False)
                self._answer(HTTPStatus.OK, text, "application/json")
        elif asked.path == "/favicon.ico":
            self._answer(HTTPStatus.NO_CONTENT)
        else:
            self._answer(HTTPStatus.NOT_FOUND, "there is nothing here\n")

    def _answer(self, status: HTTPStatus, text: str = "", kind: str = "text/plain") -> None:
        data = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if status is not HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal is the user's."""
