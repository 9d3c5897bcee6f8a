"""``fitbo watch``: to this machine only, by reading only, and following a run in a browser."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fitbo.cli import main
from fitbo.cli.server import serving
from fitbo.report.live import Board
from tests.browser import browser, needs_chromium
from tests.campaigns import start, wait_for, write_config
from tests.report.test_regret import write_run
from tests.studies import loaded, run, study


def get(address: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    port = int(address.rstrip("/").rpartition(":")[2])
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        link.request("GET", path, headers=headers)
        answer = link.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        link.close()


@contextmanager
def running(config: Path) -> Iterator[subprocess.Popen[str]]:
    """``fitbo run`` of a file, beside what watches it."""
    with start(["run", str(config), "--quiet", "--no-report"]) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def watching(*arguments: str | Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """``fitbo watch`` as a process, and the address that it prints."""
    with start(["watch", *map(str, arguments)]) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/", line)
            assert found, line
            yield found[0], process
        finally:
            process.kill()


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes())
        for p in folder.rglob("*")
        if p.is_file()
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for seed in range(2):
        write_run(tmp_path / "results", [1.0, 0.5, 0.1], seed=seed, budget=4)
    return tmp_path / "results"


def test_the_page_and_its_states(results: Path) -> None:
    before = contents(results)
    with serving(Board([results], "t")) as address:
        status, headers, html = get(address, "/")
        assert status == 200
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert "connect-src 'self'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        version = re.search(rb'"version":"(t-\d+)"', html)
        assert version is not None
        assert get(address, f"/state?since={version[1].decode()}")[0] == 204
        write_run(results, [1.0, 0.5, 0.1, 0.01], seed=0, budget=4)
        status, headers, body = wait_for(
            lambda: (
                (found := get(address, f"/state?since={version[1].decode()}"))[0] == 200 and found
            )
        )
        state = json.loads(body)
        assert state["version"] != version[1].decode()
        assert "1 of 2 runs complete" in state["main"]
        assert not state["over"]
        assert set(state["charts"]) == {"branin-regret", "branin-eta", "branin-seconds"}
        assert get(address, "/etc/passwd")[0] == 404
        assert get(address, "/../secret")[0] == 404
    after = contents(results)
    assert after.keys() == before.keys()  # it has written nothing


def test_other_hosts_are_refused(results: Path) -> None:
    """As of a page whose own name was made to point here."""
    with serving(Board([results], "t")) as address:
        port = address.rstrip("/").rpartition(":")[2]
        assert get(address, "/", Host=f"localhost:{port}")[0] == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port}.evil"):
            status, _, body = get(address, "/state", Host=host)
            assert status == 403
            assert b"branin" not in body


def test_it_listens_on_this_machine_only(results: Path) -> None:
    with serving(Board([results], "t")) as address:
        port = int(address.rstrip("/").rpartition(":")[2])
        others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}
        for other in {str(host) for host in others if ":" not in str(host)} - {"127.0.0.1"}:
            with socket.socket() as link:
                link.settimeout(2)
                assert link.connect_ex((other, port)) != 0


def test_a_board_waits_for_a_first_evaluation_and_says_what_is_wrong(tmp_path: Path) -> None:
    board = Board([tmp_path / "later"], "t")
    assert not board.look()
    assert "Nothing has been evaluated yet" in board.state.page.main
    write_run(tmp_path / "later", [1.0, 0.5])
    assert board.look()
    assert "1 of 1 run complete" in board.state.page.main
    assert board.state.over
    assert not board.look()
    (tmp_path / "later" / "other.jsonl").write_text('{"a": "<b>"}\n{}\n')
    assert board.look()
    assert "format must be 1 or 2" in board.state.page.main
    (tmp_path / "later" / "other.jsonl").unlink()
    assert board.look()
    assert "1 of 1 run complete" in board.state.page.main


def test_a_study_s_journal_is_shown_at_once_and_its_model_after_a_rest(tmp_path: Path) -> None:
    config = loaded(tmp_path, "budget: 7\n")
    folder, now = tmp_path / "results" / "try", [0.0]
    run(config)
    board = Board([folder], "t", clock=lambda: now[0])
    assert board.look()
    assert "progress" in board.state.page.charts
    assert "slices" not in board.state.page.charts
    assert board.look()  # the model
    assert "slices" in board.state.page.charts
    assert not board.look()
    run(loaded(tmp_path, "budget: 9\n"))
    assert board.look()
    assert "The model is that of 7 evaluations" in board.state.page.main
    assert "slices" in board.state.page.charts
    board.rested = now[0] + 1
    assert not board.look() or board.state.over
    now[0] += 2
    board.look()
    assert "The model is that of" not in board.state.page.main
    assert "9 evaluations" in board.state.page.main


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path / "nowhere")]) == 2
    assert "must be a YAML file, a results folder or a journal" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["watch", str(tmp_path), "--port", port]) == 2
    assert "--port must be free" in capsys.readouterr().err
    assert main(["watch", str(tmp_path), "--port", "70000"]) == 2


def test_ctrl_c_ends_it_quietly(results: Path) -> None:
    with watching(results, "--port", "0") as (address, process):
        assert get(address, "/")[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


@needs_chromium
def test_a_browser_follows_a_running_campaign(tmp_path: Path) -> None:
    two: dict[str, Any] = {"problems": ["branin", "forrester"], "seeds": 2, "budget": 8}
    methods = [
        {"label": "MM", "entropy": "mm", "samples": 12},
        {"label": "random", "acquisition": "random"},
    ]
    config = write_config(tmp_path / "out", **two, methods=methods)
    facts = "document.querySelector('.facts').textContent"
    with watching(config) as (address, process), browser(tmp_path / "profile") as window:
        window.open(address)
        assert "Nothing has been evaluated yet" in window.ask("document.body.textContent")
        window.ask("window.mine = 1")  # lost if the page were loaded again
        with running(config) as campaign:
            window.wait_for("document.querySelector('figure canvas')", 120)
            window.wait_for("document.querySelector(\"[data-group='random']\")", 120)
            before = window.ask(facts)
            window.click("[data-group='random']")
            window.wait_for(f"{facts}.includes('8 of 8 runs complete')", 180)
            assert campaign.wait(60) == 0
        assert "8 of 8 runs complete" not in before  # it grew before our eyes
        window.wait_for("document.getElementById('live').textContent === 'ended'")
        assert window.ask("window.mine") == 1
        off = "document.querySelector(\"[data-group='random']\").getAttribute('aria-pressed')"
        assert window.ask(off) == "false"
        last = "Figures.figures.get('branin-regret').panels[0].u.data[0].at(-1)"
        assert window.ask(last) == 8
        assert window.complaints == []
        kinds = {p.suffix for p in (tmp_path / "out").rglob("*") if p.is_file()}
        assert kinds <= {".jsonl", ".npz", ".lock"}  # no page, no picture
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        window.wait_for("document.getElementById('live').classList.contains('gone')")


@needs_chromium
def test_a_browser_follows_a_study(tmp_path: Path) -> None:
    path = study(tmp_path, "budget: 9\n")
    with watching(path) as (address, _), browser(tmp_path / "profile") as window:
        window.open(address)
        with running(path) as process:
            window.wait_for("document.querySelector('figure[data-chart=slices] canvas')", 120)
            window.wait_for(
                "document.getElementById('live').textContent === 'ended' "
                "&& document.body.textContent.includes('9 evaluations')",
                120,
            )
            assert process.wait(60) == 0
        assert window.complaints == []
