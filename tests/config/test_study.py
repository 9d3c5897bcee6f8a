"""Study files: what each key refuses, in one located error; what may change, and what not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fitbo.config.build import build_objective, build_settings, build_space, check_objective
from fitbo.config.campaign import from_dict, json_schema, load, loads, to_dict
from fitbo.decode import ConfigError
from fitbo.objectives import CommandObjective, PythonObjective
from fitbo.records.headers import _lasting, check_same, header
from fitbo.records.journal import ConfigChanged, Journal
from fitbo.space import Categorical, Integer, Real
from tests.studies import PYTHON, SPACE, study

CONFIGS = Path(__file__).parents[2] / "configs"
BLACK_BOXES = sorted(CONFIGS.glob("blackbox_*.yaml"))
COMMAND = """\
objective:
  command: ["./simulate", "{a}", "{n}", "{c}"]
  value: {stdout: json, key: loss}
  timeout: 600
"""
WHOLE = COMMAND + SPACE + "budget: 60\nseed: 3\n"


def complaint(text: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loads(text, "dir/x.yaml", overrides)
    return str(caught.value).replace("\n    ", " ")


def test_the_issue_s_file_loads() -> None:
    config = loads(WHOLE, "dir/x.yaml")
    assert config.name == "x"
    assert (config.budget, config.seed) == (60, 3)
    (one,) = config.studies()
    space = build_space(one.problem)
    assert space.names == ("a", "n", "c")
    assert space.parameters == (
        Real(0.0, 1.0),
        Integer(1, 9),
        Categorical(["red", "green", "blue"]),
    )
    objective = build_objective(one.problem)
    assert isinstance(objective, CommandObjective)
    assert objective.timeout == 600
    assert (objective.value.stdout, objective.value.key) == ("json", "loss")
    assert build_settings(one).seed == 3
    assert from_dict(to_dict(config)) == config


@pytest.mark.parametrize("path", BLACK_BOXES, ids=lambda path: path.stem)
def test_shipped_files_load_and_their_objectives_are_there(path: Path) -> None:
    config = load(path)
    assert config.single
    assert config.name == path.stem
    check_objective(config.all_problems[0], str(path))
    assert from_dict(to_dict(config)) == config


def test_there_are_three_shipped() -> None:
    assert [path.stem for path in BLACK_BOXES] == [
        "blackbox_command",
        "blackbox_noisy",
        "blackbox_python",
    ]


def test_a_study_is_a_file_with_a_space_of_its_own() -> None:
    others = [path for path in CONFIGS.glob("*.yaml") if path not in BLACK_BOXES]
    assert others
    assert not any(load(path).single for path in others)


def test_one_of_each_in_the_plural_is_a_study_too() -> None:
    one = loads(WHOLE.replace("seed: 3", "seeds: [3]\nmethods: [ei]"), "dir/x.yaml")
    (study,) = one.studies()
    assert (study.seed, study.method.acquisition) == (3, "ei")
    assert study.journal == Path("results/x/study.jsonl")
    assert "seeds: must be one where space is given" in complaint(
        WHOLE.replace("seed: 3", "seeds: 3")
    )
    assert "methods: must be one where space is given" in complaint(WHOLE + "methods: [ei, pi]\n")
    assert "seed: must be left out beside seeds" in complaint(WHOLE + "seeds: [3]\n")
    assert "space: must be left out beside problems" in complaint(WHOLE + "problems: [branin]\n")
    assert "evaluations: must be left out of one study" in complaint(
        WHOLE + "evaluations: threads\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("low: 0.0, high: 1.0", "low: 1.0, high: 1.0", "x.yaml:6: space.a.low: must be below high"),
        (
            "low: 1, high: 9",
            "low: 9, high: 1",
            "x.yaml:7: space.n.low: must be below high, got low=9",
        ),
        ("low: 1, high: 9", "low: 1.5, high: 9", "space.n.low: expected an integer, got 1.5"),
        ("low: 0.0, high", "low: 0.0, log: true, high", "space.a.log: needs low > 0, got low=0"),
        ("low: 0.0, high", "low: zero, high", "space.a.low: expected a finite number, got 'zero'"),
        ("type: real", "type: reel", "space.a.type: expected one of real, integer, categorical"),
        ("type: real", "type: reel", "did you mean 'real'?"),
        ("type: real, ", "", "x.yaml:6: space.a.type: this key is missing"),
        ("high: 1.0", "hihg: 1.0", "space.a.hihg: unknown key; did you mean 'high'?"),
        ("[red, green, blue]", "[red]", "space.c.choices: must be two or more, got 1"),
        ("[red, green, blue]", "[red, red]", "space.c.choices[1]: must be distinct"),
        ("[red, green, blue]", "[1, red, '1']", "space.c.choices[2]: must be distinct from"),
        ("[red, green, blue]", "[red, ' red']", "choices[1]: must not begin or end with a blank"),
        ("  n: {", "  a: {", "x.yaml:7: the key 'a' is given twice, first on line 6"),
        ("  n: {", "  n-1: {", "space: must have names of letters"),
        ("{n}", "{m}", "x.yaml:2: objective.command[2]: there is no parameter for the placeholder"),
        (
            '"{n}", "{c}"',
            '"{colour}", "{n}"',
            "placeholder {colour}; expected one of a, n, c, seed",
        ),
        ("{a}", "{seeed}", "placeholder {seeed}; did you mean 'seed'?"),
        ("{a}", "{", "objective.command[1]: there is a lone brace"),
        ('"{n}", ', "", "objective.command: must mention every parameter"),
        ("  n: {type", "  seed: {type", "space.seed: must have another name"),
        ('"./simulate", ', '"", ', "objective.command: must begin with a program"),
        ("stdout: json", "stdout: xml", "objective.value.stdout: expected one of number, json"),
        ("{stdout: json, key: loss}", "{regex: '('}", "objective.value.regex: must be a regular"),
        ("timeout: 600", "timeout: -1", "x.yaml:4: objective.timeout: expected a finite number"),
        ("timeout: 600", "retries: many", "objective.retries: expected an integer"),
        ("timeout: 600", "kwargs: {b: 1}", "objective.kwargs: must be left out: it is for python"),
        ("timeout: 600", "python: 'a:b'", "objective: expected either python or command, got both"),
        ("budget: 60\n", "", "x.yaml:1: budget: this key is missing"),
        ("budget: 60", "budget: 0", "x.yaml:9: budget: expected an integer from 1"),
        ("seed: 3", "seeed: 3", "x.yaml:10: seeed: unknown key; did you mean 'seed'?"),
        ("seed: 3", "constraints: ['a + b <= 1']", "x.yaml:10: constraints[0]"),
        ("seed: 3", "constraints: ['a +']", "constraints[0]"),
        ("seed: 3", "constraints: ['__import__(\"os\")']", "constraints[0]"),
        ("seed: 3", "initial: {n: 61}", "budget: must be at least the initial design, 61"),
        ("seed: 3", "executor: {kind: serial, workers: 2}", "executor.workers: must be 1"),
        ("seed: 3", "executor: {kind: dusk}", "did you mean 'dask'?"),
        ("seed: 3", "method: {acquisition: ie}", "method.acquisition: expected one of"),
        ("seed: 3", "max_failures: 0", "max_failures: expected an integer from 1"),
        ("seed: 3", "tolerance: -1", "tolerance: expected a finite number >= 0"),
    ],
)
def test_one_clear_error_each(old: str, new: str, expected: str) -> None:
    text = WHOLE.replace(old, new, 1)
    assert text != WHOLE
    assert expected in complaint(text)


def test_an_empty_space_is_refused() -> None:
    assert "space: must not be empty" in complaint("space: {}\nbudget: 3\n")


def test_overrides_reach_into_the_space() -> None:
    config = loads(WHOLE, "x.yaml", ["space.a.high=2", "budget=5", "executor=threads"])
    assert config.space["a"].options["high"] == 2.0
    assert (config.budget, config.place.kind) == (5, "threads")


def test_choices_keep_their_types() -> None:
    text = WHOLE.replace("[red, green, blue]", "[1, 1.5, 1e-3, true, one]")
    assert loads(text).space["c"].options["choices"] == (1, 1.5, 0.001, True, "one")


def test_numbers_for_a_function_are_numbers() -> None:
    text = PYTHON.replace("}", ", kwargs: {a: 1e-4, b: [1e3, '1e3'], c: 2}}") + SPACE + "budget: 9"
    objective = loads(text).objective
    assert objective is not None
    assert objective.kwargs == {"a": 1e-4, "b": [1000.0, "1e3"], "c": 2}
    assert "objective.kwargs: must be finite" in complaint(text.replace("1e-4", ".inf"))


def test_a_point_file_frees_the_command_of_placeholders() -> None:
    text = WHOLE.replace('"{a}", "{n}", "{c}"', '"{point}"')
    assert loads(text).objective is not None


def test_a_study_without_objective_is_for_ask_and_tell() -> None:
    config = loads(SPACE + "budget: 3\n")
    with pytest.raises(ValueError, match="has no objective to run"):
        build_objective(config.all_problems[0])


def test_the_objective_is_looked_for(tmp_path: Path) -> None:
    path = study(tmp_path)
    (problem,) = load(path).all_problems
    check_objective(problem, str(path))
    assert isinstance(build_objective(problem), PythonObjective)
    for old, new, expected in (
        ("model.py:f", "model.py:g", "objective.python: must name a function of ./model.py"),
        ("model.py:f", "model.py:note", "missing a required argument: 'folder'"),
        ("model.py:f", "nodel.py:f", "objective.python: must name a file that exists"),
    ):
        path.write_text(path.read_text().replace(old, new))
        with pytest.raises(ConfigError) as caught:
            check_objective(load(path).all_problems[0], str(path))
        assert expected in str(caught.value).replace("\n    ", " ")
        path.write_text(path.read_text().replace(new, old))
    path.write_text(COMMAND + path.read_text().replace(PYTHON, ""))
    with pytest.raises(ConfigError, match=r"objective.command\[0\]:\s+there is no\s+file"):
        check_objective(load(path).all_problems[0], str(path))


def test_what_may_change_while_a_study_goes_on() -> None:
    def same(*overrides: str) -> bool:
        changed, before = (
            header(loads(WHOLE, "x.yaml", each).studies()[0]) for each in (overrides, ())
        )
        try:
            check_same(Journal(before), loads(WHOLE, "x.yaml", overrides).studies()[0])
        except ConfigChanged:
            return False
        return _lasting(changed["study"]) == _lasting(before["study"])

    assert same("budget=99", "objective.timeout=1", "executor=threads", "target=0", "name=y")
    assert same("minimum=0.5", "base=elsewhere", "method.label=mine")
    for override in ("seed=4", "space.a.high=2", "method.samples=9", "objective.value.key=x"):
        assert not same(override)


def test_the_schema_accepts_what_the_decoder_does() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for path in BLACK_BOXES:
        validator.validate(json.loads(json.dumps(to_dict(load(path)))))
    good: dict[str, Any] = to_dict(loads(WHOLE))
    validator.validate(good)
    assert not validator.is_valid(good | {"budget": 0})
    assert not validator.is_valid(good | {"space": {"a": {"type": "reel", "low": 0, "high": 1}}})
