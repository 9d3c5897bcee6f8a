"""Black boxes: what counts as a value, what as a failure, and that nothing is left running."""

from __future__ import annotations

import json
import os
import pickle
import stat
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fitbo.objectives import (
    CommandObjective,
    Failed,
    Outcome,
    PythonObjective,
    Value,
    end_all,
    end_left_over,
    evaluate,
    process,
)
from fitbo.objectives.command import check_placeholders, fill, missing
from fitbo.objectives.outcome import clip, ending, number
from fitbo.objectives.python import _signature, check_signature, load

POINT = {"a": 0.25, "n": 3, "c": "red"}


@pytest.fixture(autouse=True)
def _not_ending() -> None:
    """A test of Ctrl-C in the same process leaves the mark that the next run removes."""
    ending.clear()


def shell(script: str, *arguments: str, **options: Any) -> CommandObjective:
    script = script.replace("{", "{{").replace("}", "}}")
    return CommandObjective(("sh", "-c", script, "sh", *arguments), **options)


def run(objective: Any, tmp_path: Path, point: dict[str, Any] = POINT, seed: int = 7) -> Outcome:
    return evaluate(objective, point, seed, tmp_path / "scratch" / "1")


def reason(objective: Any, tmp_path: Path) -> str:
    outcome = run(objective, tmp_path)
    assert outcome.value is None
    assert outcome.reason is not None
    return outcome.reason


def left(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "scratch").iterdir())


def module(tmp_path: Path, text: str) -> str:
    (tmp_path / "model.py").write_text(text)
    return "./model.py:train"


# --- Numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [1, 2.5, np.float32(1.5), np.int64(4), np.array(3.0), np.array([[3.0]]), Decimal(2)]
)
def test_numbers_of_every_kind_are_values(value: Any) -> None:
    assert number(value) == float(np.squeeze(value))


@pytest.mark.parametrize("value", [None, "1", True, [1.0], np.array([1.0, 2.0]), 1j, {}])
def test_what_is_no_number_has_failed(value: Any) -> None:
    with pytest.raises(Failed, match="expected a number, got"):
        number(value)


class Liar:
    def __repr__(self) -> str:
        raise SystemError("no text")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.ma.masked, "the value is masked"),  # it was told as 0.0
        (np.ma.array([3.0], mask=[True]), "the value is masked"),
        (np.ma.array([3.0, 4.0], mask=[True, False]), "the value is masked"),
        (np.array([1 + 0j]), "expected a number, got complex"),
        (np.array([]), "expected a number, got ndarray"),
        (np.array([1.0], dtype=object), "expected a number, got ndarray"),
        (np.array([7], dtype="datetime64[ns]"), "expected a number, got ndarray"),
        (np.array([True]), "expected a number, got bool"),
        (np.array(["1"]), "expected a number, got str"),
        (np.zeros(1, dtype=[("a", float)]), "expected a number, got tuple"),
        (Liar(), "expected a number, got Liar <no text: SystemError>"),
    ],
)
def test_an_array_that_holds_no_number_has_failed(value: Any, expected: str) -> None:
    with pytest.raises(Failed, match=expected):
        number(value)


def test_an_array_without_a_mask_in_force_is_a_value() -> None:
    assert number(np.ma.array([3.0], mask=[False])) == 3.0
    assert number(np.ma.array(3.0)) == 3.0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -np.inf, 10**400])
def test_a_value_that_is_not_finite_has_failed(value: Any) -> None:
    with pytest.raises(Failed, match=r"the value is (nan|-?inf)"):
        number(value)


def test_a_reason_is_one_short_printable_line() -> None:
    assert clip("a\nb\x1b[31m\tc") == "a b?[31m c"
    assert len(clip("x" * 10_000)) == 300


# --- Placeholders -----------------------------------------------------------------------------


def test_placeholders_are_filled_and_doubled_braces_are_braces() -> None:
    known = {"a": "1", "b": "{c}"}
    assert fill("--a={a}{{a}} { b }", known) == "--a=1{a} {c}"
    assert fill("x{a}", known) == "x1"


def test_an_unknown_placeholder_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"placeholder \{alpa\}; did you mean 'alpha'\?"):
        check_placeholders("{alpa}", ["alpha", "beta"])
    assert check_placeholders("{alpha} {seed}", ["alpha"]) == {"alpha", "seed"}


@pytest.mark.parametrize("text", ["{", "a}", "{a{b}", "{{{"])
def test_a_lone_brace_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="there is a lone"):
        check_placeholders(text, ["a", "b"])


def test_a_missing_program_is_told_before_anything_runs(tmp_path: Path) -> None:
    assert missing("sh", tmp_path) is None
    assert "on the PATH" in str(missing("no-such-program-here", tmp_path))
    assert "there is no file" in str(missing("./simulate", tmp_path))
    (tmp_path / "simulate").write_text("#!/bin/sh\necho 1\n")
    assert "chmod +x" in str(missing("./simulate", tmp_path))
    (tmp_path / "simulate").chmod(stat.S_IRWXU)
    assert missing("./simulate", tmp_path) is None


# --- Programs ---------------------------------------------------------------------------------


def test_a_program_gets_the_point_and_its_last_number_is_the_value(tmp_path: Path) -> None:
    script = 'echo start; echo "$1 $2 $3 $4" > args; cat args; echo 0.5; echo done'
    objective = shell(script, "{a}", "{n}", "x={c}", "{seed}", keep=True)
    outcome = run(objective, tmp_path)
    assert outcome.value == 0.5
    (kept,) = outcome.kept
    assert Path(kept, "args").read_text() == "0.25 3 x=red 7\n"
    assert json.loads(Path(kept, "point.json").read_text()) == POINT
    assert Path(kept, "stdout").read_text().startswith("start\n")


def test_arguments_pass_through_no_shell(tmp_path: Path) -> None:
    objective = CommandObjective(("printf", "%s\n", "$(echo 1); {c}", "2"))
    assert run(objective, tmp_path, {"c": "; rm -rf *"}).value == 2.0


def test_a_program_beside_the_study_and_its_environment(tmp_path: Path) -> None:
    program = tmp_path / "simulate"
    program.write_text('#!/bin/sh\ntest "$0" = "$2/simulate" && echo "$A$1"\n')
    program.chmod(stat.S_IRWXU)
    command = ("./simulate", "{n}", "{study}")
    objective = CommandObjective(command, env={"A": "{n}."}, base=tmp_path)
    assert run(objective, tmp_path).value == 3.3


def test_scratch_goes_after_success_and_stays_after_failure(tmp_path: Path) -> None:
    assert run(shell("echo 1"), tmp_path).value == 1
    assert left(tmp_path) == []
    outcome = run(shell("echo oops >&2; exit 3"), tmp_path)
    assert outcome.reason == "exit code 3: oops"
    assert left(tmp_path) == ["1"]
    assert Path(outcome.kept[0], "stderr").read_text() == "oops\n"
    run(shell("exit 4"), tmp_path)  # the same evaluation again: another directory
    assert left(tmp_path) == ["1", "1.2"]


def test_retries_end_with_the_first_success(tmp_path: Path) -> None:
    script = f"if [ -e {tmp_path}/mark ]; then echo 4; else touch {tmp_path}/mark; exit 1; fi"
    outcome = run(shell(script, retries=3), tmp_path)
    assert (outcome.value, outcome.attempts) == (4, 2)
    assert left(tmp_path) == ["1"]  # the failed attempt's
    outcome = run(shell("exit 1", retries=2), tmp_path)
    assert (outcome.reason, outcome.attempts) == ("exit code 1", 3)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo hello", "stdout has no line that is only a number; its last line is 'hello'"),
        ("true", "stdout is empty"),
        ("echo 1; echo nan", "the value is nan"),
        ("echo -inf", "the value is -inf"),
        ("echo 1_000", "stdout has no line that is only a number"),
        ("kill -9 $$", "killed by SIGKILL"),
        ("printf '\\377\\000'", "stdout has no line that is only a number"),
    ],
)
def test_failures_of_a_program(script: str, expected: str, tmp_path: Path) -> None:
    assert expected in reason(shell(script), tmp_path)


def test_a_program_that_cannot_start_has_failed(tmp_path: Path) -> None:
    assert "cannot be started" in reason(CommandObjective(("./nothing",), base=tmp_path), tmp_path)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def dead_soon(pid: int) -> bool:
    for _ in range(100):
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_a_timeout_ends_grandchildren_that_ignore_sigterm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.2)
    deaf = "trap '' TERM; echo $$ > mine; sleep 30; echo late > outlived"
    script = f'trap "" TERM; sh -c "{deaf.replace("$", chr(92) + "$")}" & wait; wait'
    outcome = run(shell(script, timeout=1.5), tmp_path)
    assert outcome.reason == "timeout after 1.5 s"
    assert dead_soon(int(Path(outcome.kept[0], "mine").read_text()))
    assert not Path(outcome.kept[0], "outlived").exists()  # ended, and not waited for


def test_sigterm_comes_first(tmp_path: Path) -> None:
    script = "trap 'echo saved > state; exit 0' TERM; while :; do sleep 0.05; done"
    outcome = run(shell(script, timeout=1), tmp_path)
    assert outcome.reason == "timeout after 1 s"  # in time or not at all
    assert Path(outcome.kept[0], "state").read_text() == "saved\n"


@pytest.mark.parametrize(
    "script",
    [
        "rm stdout stderr",
        "rm stdout; mkfifo stdout",
        "rm -f stdout pid; mkfifo stdout pid result.json traceback.txt",
        "rm stderr; ln -s /dev/zero stderr",
        "rm stdout; mkdir stdout",
        "cd ..; rm -r 1",
        "rm stdout; echo 99 > stdout",
    ],
)
@pytest.mark.parametrize("code", [0, 3])
def test_a_program_cannot_take_its_output_away(tmp_path: Path, script: str, code: int) -> None:
    """With a fifo in the place of stdout it went on past its timeout, and without one it failed."""
    objective = shell(f"echo 0.5; echo oops >&2; {script}; exit {code}", timeout=20.0)
    outcome = run(objective, tmp_path)
    assert (outcome.value, outcome.reason) == (
        (0.5, None) if code == 0 else (None, "exit code 3: oops")
    )


@pytest.mark.parametrize(
    "thing", ["os.mkfifo(scratch / 'v')", "(scratch / 'v').symlink_to('/dev/zero')"]
)
def test_a_value_s_file_must_be_a_file(tmp_path: Path, thing: str) -> None:
    script = f"import os, pathlib; scratch = pathlib.Path('.'); {thing}"
    objective = CommandObjective((sys.executable, "-c", script), value=Value(file="v"))
    assert reason(objective, tmp_path) == "v is not a file"


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize(
    "made", ["shutil.rmtree(scratch)", "[os.mkfifo(scratch / n) for n in ('traceback.txt', 'out')]"]
)
def test_a_function_may_do_anything_to_its_directory(
    tmp_path: Path, made: str, isolate: bool
) -> None:
    text = f"import os, shutil\ndef train(scratch, **point):\n    {made}\n    "
    for end, value in (("return 2.0", 2.0), ("raise KeyError(1)", None)):
        target = module(tmp_path, text + end)
        load.cache_clear()
        assert run(PythonObjective(target, base=tmp_path, isolate=isolate), tmp_path).value == value


def test_what_a_program_leaves_running_is_ended(tmp_path: Path) -> None:
    outcome = run(shell("sleep 60 & echo $! > mine; echo 1", keep=True), tmp_path)
    assert outcome.value == 1
    assert dead_soon(int(Path(outcome.kept[0], "mine").read_text()))


def test_what_a_killed_study_left_running_is_ended(tmp_path: Path) -> None:
    folder = tmp_path / "0007"
    folder.mkdir()
    with subprocess.Popen(["/bin/sleep", "60"], start_new_session=True) as orphan:
        (folder / "pid").write_text(f"{orphan.pid} 1\n")  # of another process with its number
        end_left_over(folder)
        assert not folder.exists()
        assert alive(orphan.pid)
        folder.mkdir()
        (folder / "pid").write_text(f"{orphan.pid} {process._birth(orphan.pid)}\n")
        end_left_over(folder)
        assert orphan.wait(10) == -9
    end_left_over(folder)  # nothing is there any more


def test_a_flood_of_output_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_OUTPUT", 1 << 20)
    assert reason(shell("yes"), tmp_path) == "stdout went over 1 MiB"


def test_what_starts_while_all_are_ended_is_ended_too(tmp_path: Path) -> None:
    ending.set()
    try:
        assert reason(shell("sleep 600"), tmp_path) == "killed by SIGKILL"
    finally:
        ending.clear()


def test_end_all_stops_what_other_threads_run(tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    objective = shell("touch started; sleep 60", retries=5)
    thread = threading.Thread(target=lambda: outcomes.append(run(objective, tmp_path)))
    thread.start()
    try:
        while not list(tmp_path.glob("scratch/1/started")):
            time.sleep(0.01)
        end_all()
        thread.join(10)
    finally:
        ending.clear()
    assert [outcome.attempts for outcome in outcomes] == [1]


# --- Where the value is -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "script", "expected"),
    [
        (Value(stdout="json", key="loss"), "echo '{\"loss\": 2}'", 2.0),
        (Value(stdout="json", key="loss"), "echo log; echo '{\"loss\": 2}'", 2.0),
        (Value(stdout="json", key="a.b"), 'echo \'{"a": {"b": 3}}\'', 3.0),
        (Value(stdout="json", key="a.b"), "echo '{\"a.b\": 4}'", 4.0),
        (Value(stdout="json"), "echo 5", 5.0),
        (Value(regex=r"loss=(\S+)"), "echo loss=1; echo loss=6e-1 end", 0.6),
        (Value(regex=r"^-?\d+$"), "echo x; echo -7; echo y", -7.0),
        (Value(regex=r"(\w+)=(?P<value>\d+)"), "echo a=8", 8.0),
        (Value(file="out.json", key="loss"), "echo '{\"loss\": 9}' > out.json", 9.0),
        (Value(file="out.json"), "echo 10 > out.json", 10.0),
        (Value(file="d/out.txt"), "mkdir d; echo 11 > d/out.txt", 11.0),
        (Value(file="log", regex="v=(.*)"), "echo v=12 > log", 12.0),
    ],
)
def test_values_are_found(value: Value, script: str, expected: float, tmp_path: Path) -> None:
    assert run(shell(script, value=value), tmp_path).value == expected


@pytest.mark.parametrize(
    ("value", "script", "expected"),
    [
        (Value(stdout="json", key="loss"), "echo '{}'", "has no key 'loss'"),
        (Value(stdout="json", key="loss"), "echo no", "stdout is not JSON; its last line is 'no'"),
        (Value(stdout="json", key="loss"), 'echo \'{"loss": "1"}\'', "expected a number, got str"),
        (Value(stdout="json", key="loss"), "echo '{\"loss\": NaN}'", "the value is nan"),
        (
            Value(stdout="json", key="loss"),
            "echo '{\"loss\": true}'",
            "expected a number, got bool",
        ),
        (Value(stdout="json"), "true", "stdout is empty"),
        (Value(regex="loss=(.*)"), "echo x", "the regex matches nothing in stdout"),
        (Value(regex="loss=(.*)"), "echo loss=x", "the match in stdout is not a number: 'x'"),
        (Value(file="out.json", key="a"), "true", "the program wrote no file out.json"),
    ],
)
def test_values_are_missed(value: Value, script: str, expected: str, tmp_path: Path) -> None:
    assert expected in reason(shell(script, value=value), tmp_path)


def test_deeply_nested_json_is_only_a_failure(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    objective = shell(f"cat {tmp_path}/deep.json", value=Value(stdout="json", key="a"))
    assert "stdout is not JSON" in reason(objective, tmp_path)


def test_a_regex_that_would_take_for_ever_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fitbo.objectives.value.PATIENCE", 0.5)
    objective = shell(f"echo {'a' * 60}", value=Value(regex=r"^(a+)+b"))
    assert reason(objective, tmp_path) == "the regex took over 0.5 s"


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"regex": "("}, "^regex must be a regular expression"),
        ({"regex": "a", "key": "b"}, "^regex must be left out beside key"),
        ({"stdout": "json", "file": "x"}, "^file must be left out beside stdout"),
        ({"stdout": "number", "key": "x"}, "^key must be left out"),
        ({"file": "../x"}, "^file must be"),
        ({"file": "/etc/passwd"}, "^file must be"),
        ({"stdout": "xml"}, "^stdout must be one of number, json"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Value(**keys)


# --- Functions --------------------------------------------------------------------------------


def test_a_function_of_a_file_gets_point_kwargs_seed_and_scratch(tmp_path: Path) -> None:
    target = module(
        tmp_path,
        "def train(a, n, c, *, scale, seed, scratch):\n"
        "    (scratch / 'note').write_text(c)\n"
        "    return scale * (a + n) + seed\n",
    )
    objective = PythonObjective(target, {"scale": 2}, base=tmp_path, keep=True)
    outcome = run(pickle.loads(pickle.dumps(objective)), tmp_path)  # noqa: S301 (our own)
    assert outcome.value == 2 * 3.25 + 7
    assert Path(outcome.kept[0], "note").read_text() == "red"


def test_a_function_may_change_what_it_is_given(tmp_path: Path) -> None:
    target = module(
        tmp_path,
        "def train(a, n, c, layers):\n    layers.append(8)\n    return len(layers)\n",
    )
    objective = PythonObjective(target, {"layers": [4, 4]}, base=tmp_path)
    assert [run(objective, tmp_path).value for _ in range(2)] == [3, 3]


def test_a_function_of_a_module(tmp_path: Path) -> None:
    outcome = run(PythonObjective("math:hypot_"), tmp_path)
    assert "ValueError: python must name a function of math, got 'hypot_'" in str(outcome.reason)
    assert run(PythonObjective("operator:truth"), tmp_path, {}).value is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("import sys; sys.exit(4)", "SystemExit: 4"),
        ("return None", "expected a number, got NoneType None"),
        ("return float('nan')", "the value is nan"),
    ],
)
def test_failures_of_a_function(body: str, expected: str, tmp_path: Path) -> None:
    target = module(tmp_path, f"def train(**point):\n    {body}\n")
    assert reason(PythonObjective(target, base=tmp_path), tmp_path) == expected


RAISED = {
    "asyncio.CancelledError()": "CancelledError",
    "GeneratorExit('x')": "GeneratorExit: x",
    "type('Odd', (BaseException,), {})('x')": "Odd: x",
    "type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()": "Mute: <no text: ",
    "type('Mute', (Exception,), {'__str__': lambda self: None})()": "Mute: <no text: TypeError>",
    "BaseExceptionGroup('both', [SystemExit(1)])": "BaseExceptionGroup: both",
    "StopIteration(3)": "StopIteration: 3",
}


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("raised", RAISED)
def test_whatever_a_function_raises_is_a_failure(
    tmp_path: Path, raised: str, isolate: bool
) -> None:
    """These ended the study with a traceback, at the same point each time."""
    target = module(tmp_path, f"import asyncio\ndef train(**point):\n    raise {raised}\n")
    objective = PythonObjective(target, base=tmp_path, isolate=isolate)
    assert RAISED[raised] in reason(objective, tmp_path)


def test_ctrl_c_in_a_function_passes_through_and_leaves_no_scratch(tmp_path: Path) -> None:
    target = module(tmp_path, "def train(**point):\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        run(PythonObjective(target, base=tmp_path), tmp_path)
    assert left(tmp_path) == []


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("end", ["return 1.0", "raise ValueError('of the child')"])
def test_a_process_that_a_function_forks_ends_with_the_call(
    tmp_path: Path, isolate: bool, end: str
) -> None:
    """It came back into the study's loop, and wrote the same journal."""
    target = module(
        tmp_path,
        "import os\ndef train(**point):\n    child = os.fork()\n"
        f"    if child == 0:\n        {end}\n"
        "    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) + 5.0\n",
    )
    before = os.getpid()
    outcome = run(PythonObjective(target, base=tmp_path, isolate=isolate), tmp_path)
    assert os.getpid() == before
    assert outcome.value == 5.0


# --- The machine's fault ----------------------------------------------------------------------

FULL_DISK = """
import sys
from pathlib import Path
from fitbo.objectives import CommandObjective, PythonObjective, evaluate
from fitbo.objectives.outcome import MachineError
from fitbo.objectives.value import Value

disk, kind, room = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
kinds = {
    "program": CommandObjective(("sh", "-c", "echo {a}")),
    "quiet": CommandObjective(("sh", "-c", "seq 9000; exit 0"), value=Value(stdout="number")),
    "file": CommandObjective(("sh", "-c", "echo 3 > v; exit 4"), value=Value(file="v")),
    "writer": PythonObjective("./writer.py:f", base=disk.parent),
    "isolated": PythonObjective("./writer.py:f", base=disk.parent, isolate=True),
}
with open(disk / "ballast", "wb", 0) as ballast:
    try:
        while True:
            ballast.write(bytes(4096))
    except OSError:
        ballast.truncate(max(0, ballast.tell() - room))
try:
    print(evaluate(kinds[kind], {"a": 1.5}, 0, disk / "scratch" / "1"))
except MachineError as error:
    assert "No space left on device" in str(error), error
    assert not (disk / "scratch" / "1").exists()
    print("the machine's")
(disk / "ballast").unlink()
print(evaluate(kinds[kind], {"a": 1.5}, 0, disk / "scratch" / "1").value)
"""


@pytest.mark.parametrize("room", [0, 8192])
@pytest.mark.parametrize("kind", ["program", "quiet", "file", "writer", "isolated"])
def test_a_full_disk_is_not_the_point_s_fault(tmp_path: Path, kind: str, room: int) -> None:
    """On a real file system of 256 kB: the evaluation was recorded as failed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "writer.py").write_text(
        "def f(a, scratch):\n    (scratch / 'data').write_bytes(bytes(32768))\n    return a\n"
    )
    mounted = 'mount -t tmpfs -o size=256k tmpfs "$1" && exec "$2" -c "$3" "$1" "$4" "$5"'
    command = ["unshare", "-rm", "sh", "-c", mounted, "sh", disk, sys.executable, FULL_DISK]
    done = subprocess.run(
        [*command, kind, str(room)], capture_output=True, text=True, check=False, env=os.environ
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("this needs a file system of its own")
    assert done.returncode == 0, done.stderr
    after = {"quiet": "9000.0", "file": "None"}.get(kind, "1.5")
    assert done.stdout.splitlines() == ["the machine's", after]


def test_modules_beside_the_study_and_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, value in ((here, 1), (there, 2)):
        folder.mkdir()
        (folder / f"module_{folder.name}.py").write_text(f"def f(**point): return {value}\n")
    monkeypatch.chdir(here)
    assert run(PythonObjective("module_here:f", base=there), tmp_path).value == 1
    assert run(PythonObjective("module_there:f", base=there), tmp_path).value == 2
    assert run(PythonObjective("module_here:f", base=there, isolate=True), tmp_path).value == 1


def test_an_exception_leaves_its_traceback(tmp_path: Path) -> None:
    target = module(tmp_path, "def train(**point):\n    return 1 / 0\n")
    outcome = run(PythonObjective(target, base=tmp_path), tmp_path)
    assert "return 1 / 0" in Path(outcome.kept[0], "traceback.txt").read_text()


def test_ctrl_c_is_no_failure(tmp_path: Path) -> None:
    target = module(tmp_path, "def train(**point):\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        run(PythonObjective(target, base=tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return n + a", None),
        ("import time; time.sleep(60)", "timeout after"),
        ("import os; os._exit(5)", "exit code 5"),
        ("import os; os._exit(0)", "ended its process and returned nothing"),
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("raise OSError('disk')", "OSError: disk"),
        ("raise RuntimeError", "RuntimeError"),
        ("return 'x'", "expected a number, got str 'x'"),
    ],
)
def test_an_isolated_function_may_hang_or_die(
    body: str, expected: str | None, tmp_path: Path
) -> None:
    target = module(tmp_path, f"def train(a, n, c):\n    print('hello')\n    {body}\n")
    patience = 1.5 if expected and "timeout" in expected else 60.0
    outcome = run(PythonObjective(target, base=tmp_path, timeout=patience), tmp_path)
    if expected is None:
        assert outcome.value == 3.25
    else:
        assert expected in str(outcome.reason)
        assert "hello" in Path(outcome.kept[0], "stdout").read_text() or "timeout" in expected


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("model", "^python must be package.module:function or path.py:function"),
        ("no.such.module:f", "^python must name a module that can be imported.*ModuleNotFound"),
        ("./none.py:f", "^python must name a file that exists"),
        ("./reads.py:f", "^python must name a module that can be imported.*FileNotFoundError"),
        ("./broken.py:f", "^python must name a module that can be imported.*SyntaxError"),
        ("./exits.py:f", "SystemExit: 3; put what is not for an import under if __name__"),
        ("./good.py:trian", "which is not there; did you mean 'train'"),
        ("./good.py:CONSTANT", "which is not a function"),
    ],
)
def test_a_target_that_is_not_there_is_one_error(
    target: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "reads.py").write_text("open('absent')\n")
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "exits.py").write_text("def f(a): return a\nraise SystemExit(3)\n")
    (tmp_path / "good.py").write_text("CONSTANT = 1\ndef train(a): return a\n")
    with pytest.raises(ValueError, match=complaint):
        load(target, str(tmp_path))


def test_a_signature_that_does_not_fit_is_one_error() -> None:
    def f(a: float, *, b: float = 1.0, seed: int) -> float:
        return a + b + seed

    check_signature(f, ["a"], ["b"], "m:f")
    check_signature(f, ["a", "seed"], [], "m:f")
    with pytest.raises(ValueError, match=r"^python must name a function of a, c, or of one"):
        check_signature(f, ["a", "c"], [], "m:f")
    with pytest.raises(ValueError, match="missing a required argument: 'a'"):
        check_signature(f, ["b"], [], "m:f")
    with pytest.raises(ValueError, match=r"^kwargs must not name parameters of the space, got a"):
        check_signature(f, ["a"], ["a"], "m:f")


CALLED: list[tuple[str, list[str], str]] = [  # a signature, the space, and what it is given
    ("p", ["a", "n"], "mapping"),
    ("p, /", ["a", "n"], "mapping"),
    ("p, seed", ["a", "n"], "mapping"),
    ("p, *, epochs=1, scratch=None", ["a", "n"], "mapping"),
    ("*args", ["a", "n"], "mapping"),
    ("p, **more", ["a", "n"], "mapping"),
    ("p=None", ["a", "n"], "mapping"),
    ("a, n", ["a", "n"], "names"),
    ("*, n, a=1", ["a", "n"], "names"),
    ("**p", ["a", "n"], "names"),
    ("a, **more", ["a", "n"], "names"),
    ("p", ["p"], "names"),  # it is the parameter
    ("p=None, **more", ["a", "n"], "names"),  # both would do
    ("a", ["a", "n"], "unexpected keyword argument 'n'"),
    ("p, a", ["a", "n"], "missing a required argument: 'p'"),
    ("p, a=1", ["a", "n"], "missing a required argument: 'p'"),
    ("p, q", ["a", "n"], "missing a required argument: 'p'"),
    ("seed", ["a", "n"], "unexpected keyword argument 'a'"),
    ("", ["a", "n"], "unexpected keyword argument 'a'"),
]


@pytest.mark.parametrize(("signature", "names", "how"), CALLED, ids=[case[0] for case in CALLED])
@pytest.mark.parametrize("isolate", [False, True])
def test_a_function_is_called_as_its_signature_says(
    signature: str, names: list[str], how: str, isolate: bool, tmp_path: Path
) -> None:
    """By the mapping or by names; a signature that is for neither is an error beforehand."""
    body = f"    Path('{tmp_path}/given').write_text(repr(dict(locals())))\n    return 1.0\n"
    (tmp_path / "m.py").write_text(f"from pathlib import Path\ndef f({signature}):\n{body}")
    target, point = f"{tmp_path}/m.py:f", {name: i + 0.5 for i, name in enumerate(names)}
    function = load(target, str(tmp_path))
    if how not in ("mapping", "names"):
        with pytest.raises(ValueError, match=how):
            check_signature(function, names, [], target)
        return
    check_signature(function, names, [], target)
    if isolate and len(names) > 1 and signature not in ("p", "a, n"):
        return  # an interpreter each; the rest is the same code
    objective = PythonObjective(target, isolate=isolate, names=tuple(names))
    assert evaluate(objective, point, 7, tmp_path / "scratch").value == 1.0
    given = (tmp_path / "given").read_text()
    nested = f" {point!r}" in given or f"({point!r}" in given  # in an argument, or in *args
    assert nested == (how == "mapping" or "**" in signature.replace("a, **more", ""))
    assert all(f"'{name}': {value!r}" in given for name, value in point.items())


def test_the_mapping_is_a_copy_and_may_lack_what_is_absent(tmp_path: Path) -> None:
    """The space decides how a function is called, not the parameters that a point has."""
    (tmp_path / "m.py").write_text("def f(p, weight=1):\n    return p.pop('a') * weight\n")
    objective = PythonObjective(f"{tmp_path}/m.py:f", {"weight": 3}, names=("a", "b"))
    point = {"a": 2.0}
    assert evaluate(objective, point, 0, tmp_path / "scratch").value == 6.0
    assert point == {"a": 2.0}


def test_a_built_in_function_without_a_signature_gets_the_mapping(tmp_path: Path) -> None:
    assert _signature(max) is None
    objective = PythonObjective("builtins:max", {"default": 0.5, "key": None}, names=("a",))
    check_signature(max, ["a"], ["default"], "builtins:max")
    outcome = evaluate(objective, {"a": 2.0}, 0, tmp_path / "scratch")
    assert outcome.reason == "expected a number, got str 'a'"  # the largest key of the mapping


def test_nothing_here_needs_numpy() -> None:
    code = "import sys, fitbo.objectives; sys.exit('numpy' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == 0


def test_a_function_that_takes_the_terminal_away_leaves_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # put back after the test
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    (tmp_path / "model.py").write_text(
        "import sys\ndef f(a):\n    sys.stdout = sys.stderr = None\n    return a\n"
    )
    outcome = evaluate(PythonObjective("model.py:f", base=tmp_path), {"a": 2.0}, 0, tmp_path / "1")
    assert outcome.value == 2.0
    assert sys.stdout is sys.__stdout__
    assert sys.stderr is sys.__stderr__
