"""Campaign files: those shipped, what each key refuses, overrides, schema, 200 malformed."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fitbo.acquisition import ACQUISITIONS
from fitbo.config import campaign as config
from fitbo.config.build import build_settings
from fitbo.config.campaign import (
    Campaign,
    ConfigError,
    Executor,
    ProblemConfig,
    from_dict,
    json_schema,
    load,
    loads,
    to_dict,
)
from fitbo.config.method import RANGES, EntropyConfig, MethodConfig, Sampler, Surrogate
from fitbo.decode import differences
from fitbo.entropy import BACKENDS
from fitbo.problems import PROBLEMS
from tests.config.mutate import CONFIGS, FILES, MUTATIONS, Mutant, mutants

SMALL = "problems: [branin]\nmethods: [random]\nseeds: 2\nbudget: 20\n"


def complaint(text: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loads(text, "configs/x.yaml", overrides)
    return str(caught.value).replace("\n    ", " ")


def with_method(method: str) -> str:
    return SMALL.replace("[random]", f"[ei, {method}]")


def with_problem(problem: str) -> str:
    return SMALL.replace("[branin]", f"[{problem}]")


# --- The shipped files ------------------------------------------------------------------------


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_files_load_and_round_trip(path: Path) -> None:
    campaign = load(path)
    assert campaign.name == path.stem
    data = json.loads(json.dumps(to_dict(campaign), allow_nan=False))
    assert from_dict(data) == campaign
    assert to_dict(from_dict(data)) == data
    assert list(to_dict(from_dict(data))) == list(data)
    assert differences(data, to_dict(campaign)) == []


def test_the_shipped_files_are_those_promised() -> None:
    found = {path.stem: load(path) for path in CONFIGS}
    paper = ["FITBO-Quad", "FITBO-MM", "FITBO-MEMeL-10"]
    for name, problem, budget in (
        ("hartmann6", "hartmann6", 112),
        ("michalewicz5", "michalewicz5", 110),
    ):
        campaign = found[name]
        assert [method.label for method in campaign.methods] == paper
        assert [one.label for one in campaign.problems] == [problem]
        assert campaign.seeds == tuple(range(10))
        (initial,) = {study.n_initial for study in campaign.studies()}
        assert campaign.budget - initial == 100 == budget - 2 * (campaign.problems[0].dim or 0)
    used = {method.entropy.name for method in found["all_backends"].methods if method.entropy}
    assert used == set(BACKENDS)
    assert [one.label for one in found["all_backends"].problems] == ["hartmann6", "michalewicz5"]
    others = {"pi", "mes-eta", "mes-marginal", "jes"}
    assert {m.acquisition for m in found["baselines"].methods} == set(ACQUISITIONS) - others
    figure = found["fig_1d"]
    assert figure.problems[0].dim == 1
    assert figure.budget == figure.studies()[0].n_initial + 1
    assert [method.label for method in figure.methods] == paper
    assert "quickstart" in found


def test_quickstart_shows_every_key() -> None:
    text = next(path for path in CONFIGS if path.stem == "quickstart").read_text()
    kinds = (Campaign, ProblemConfig, MethodConfig, Surrogate, Sampler, config.Initial, Executor)
    for kind in kinds:
        for name in config.decode.keys_of(kind):
            assert name in text, f"{kind.__name__}.{name}"
    for name in (*ACQUISITIONS, *BACKENDS):
        assert name in text, name


# --- What is derived --------------------------------------------------------------------------


def test_defaults_and_labels() -> None:
    campaign = loads(SMALL + "noise_std: 1e-3\n", "configs/x.yaml")
    assert campaign.name == "x"
    assert campaign.seeds == (0, 1)
    assert campaign.place == Executor("processes")
    assert campaign.studies()[0].n_initial == 4
    assert campaign.studies()[0].noise_std == 1e-3
    assert campaign.directory == Path("results/x")
    assert loads(SMALL).name == "study"
    for problem, label in (
        ("branin", "branin"),
        ("hartmann6", "hartmann6"),
        ("ackley5", "ackley5"),
        ("{name: ackley, dim: 5}", "ackley5"),
        ("{name: ackley5, dim: 5, noise_std: 0.1}", "ackley5-noise=0.1"),
        ("{name: branin, noise_std: 0}", "branin"),
        ("{name: branin, label: other}", "other"),
    ):
        assert loads(with_problem(problem)).problems[0].label == label
    for method, label in (
        ("fitbo", "FITBO-MEMeL-10"),
        ("{entropy: {n_moments: 12}}", "FITBO-MEMeL-12"),
        ("{entropy: {name: memel, windows: 0}}", "FITBO-MEMeL-10-windows=0"),
        ("{entropy: quad}", "FITBO-Quad"),
        ("{entropy: mc}", "FITBO-MC-100"),
        ("logei", "LOGEI"),
        ("{acquisition: lcb, label: UCB}", "UCB"),
    ):
        assert loads(with_method(method)).methods[1].label == label


def test_equal_files_give_equal_campaigns() -> None:
    assert loads(with_problem("ackley5")) == loads(with_problem("{name: ackley, dim: 5}"))
    assert loads(with_method("fitbo")) == loads(with_method("{entropy: {name: memel}}"))
    assert loads(with_method("lcb")) == loads(with_method("{acquisition: lcb, beta: 4}"))


def test_what_an_acquisition_does_not_use_is_none() -> None:
    ei, fitbo = loads(with_method("fitbo")).methods
    assert (ei.entropy, ei.beta) == (None, None)
    assert fitbo.entropy == EntropyConfig("memel", {"n_moments": 10, "windows": 4})
    assert loads(with_method("lcb")).methods[1].beta == 4.0
    assert ei.moments is None


@pytest.mark.parametrize(
    ("parameter", "moments"),
    [
        ("{type: real, low: 0, high: 1}", 2),
        ("{type: real, low: 0, high: 1, step: 0.1}", 1),
        ("{type: integer, low: 0, high: 9}", 1),
        ("{type: categorical, choices: [a, b]}", 1),
    ],
)
def test_the_rung_of_the_ladder_follows_the_space(parameter: str, moments: int) -> None:
    text = f"space: {{x: {{type: real, low: 0, high: 1}}, z: {parameter}}}\nbudget: 9"
    (study,) = loads(text, "s.yaml").studies()
    assert study.method.moments == study.described()["method"]["moments"] == moments
    assert build_settings(study).moments == moments
    (given,) = loads(text + "\nmethod: {moments: 3}", "s.yaml").studies()
    assert given.method.moments == 3
    (other,) = loads(text + "\nmethod: logei", "s.yaml").studies()
    assert other.method.moments is None


@pytest.mark.parametrize("name", BACKENDS)
def test_the_keys_of_an_entropy_are_the_fields_of_its_backend(name: str) -> None:
    kind: Any = BACKENDS[name]
    made = EntropyConfig(name)
    assert set(made.options) == {f.name for f in dataclasses.fields(kind) if f.init}
    assert kind(**made.options) == kind()


@pytest.mark.parametrize("name", BACKENDS)
def test_stated_bounds_are_those_of_the_constructors(name: str) -> None:
    kind: Any = BACKENDS[name]
    for option in EntropyConfig(name).options:
        limits = RANGES.get(option)
        if limits is None:
            continue
        least = limits.least
        assert least is not None
        kind(**{option: least})
        kind(**{option: limits.most if option != "seed" else 3})
        below = least / 2 if isinstance(least, float) else least - 1
        with pytest.raises(ValueError, match=f"^{option} must"):
            kind(**{option: below})


def test_a_gpy_kernel_is_an_expression() -> None:
    method = "{surrogate: {kind: gpy, kernel: matern52 + periodic*linear}}"
    assert loads(with_method(method)).methods[1].surrogate.kind == "gpy"
    message = complaint(with_method("{surrogate: {kind: gpy, kernel: foo + rbf}}"))
    assert "methods[1].surrogate.kernel: must combine rbf, " in message
    assert message.endswith("got 'foo'")


def test_gpy_is_imported_only_for_its_kind() -> None:
    code = (
        "import sys; from fitbo.config.campaign import load; load(sys.argv[1]); "
        "sys.exit(','.join(m for m in ('GPy', 'matplotlib') if m in sys.modules) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(CONFIGS[0])], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# --- What is refused --------------------------------------------------------------------------

NAMES = f"expected one of {', '.join(ACQUISITIONS)}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "problems: [branin]\nmethods:\n  - ei\n  - entropy:\n      name: memel\n"
            "      n_moments: ten\nseeds: 1\nbudget: 9",
            "configs/x.yaml:6: methods[1].entropy.n_moments: expected an integer from 2 to 1000, "
            "got 'ten'",
        ),
        (
            with_method("{entropy: {n_moment: 9}}"),
            "n_moment: unknown key; did you mean 'n_moments'?",
        ),
        (with_method("{entropy: memell}"), "got 'memell'; did you mean 'memel'?"),
        (with_method("{entropy: {name: huber, order: 1}}"), "entropy.order: must be 0 or 2, got 1"),
        (with_method("{entropy: {name: mc, n_samples: 1000000000}}"), "from 1 to 1000000"),
        (
            with_method("{acquisition: ei, label: b, entropy: mm}"),
            "methods[1].entropy: must be left out",
        ),
        (with_method("{acquisition: ei, label: b, beta: 1}"), "methods[1].beta: must be left out"),
        (with_method("{acquisition: mes, moments: 4}"), "methods[1].moments: must be left out"),
        (with_method("{acquisition: remaining, moments: 31}"), "an integer from 1 to 30, got 31"),
        (with_method("{sample: 3}"), "methods[1].sample: unknown key; did you mean 'samples'?"),
        (
            with_method("{samples: 0}"),
            "methods[1].samples: expected an integer from 1 to 100000, got 0",
        ),
        (with_method("fitb"), f"methods[1]: {NAMES}, got 'fitb'; did you mean 'fitbo'?"),
        (with_method("EI"), f"methods[1]: {NAMES}, got 'EI'; did you mean 'ei'?"),
        (with_method("ei"), "methods[1].label: must be unique, got 'EI' as in methods[0]"),
        (with_method("{label: Ei}"), "methods[1].label: must be unique, got 'Ei' as in methods[0]"),
        (with_method("{label: ../up}"), "methods[1].label: expected text of letters, digits"),
        (with_method("{label: off}"), "got the boolean off: put it in quotes, 'off'"),
        (with_method("{surrogate: matern5}"), "got 'matern5'; did you mean 'matern52'?"),
        (
            with_method("{sampler: {max_burn_in: 1}}"),
            "methods[1].sampler.max_burn_in: must be at least min_burn_in, got 1 and 4",
        ),
        (with_method("{sampler: {min_burn_in: 9, max_burn_in: 8}}"), "got 8 and 9"),
        (with_method("{rule: linear}"), "did you mean 'linearised'?"),
        (with_method("{resolution: -1}"), "resolution: expected a finite number >= 0, got -1"),
        (with_problem("brannin"), "problems[0]: must be one of "),
        (with_problem("brannin"), "did you mean 'branin'?"),
        (with_problem("ackley5, ackley5"), "problems[1].label: must be unique, got 'ackley5'"),
        (with_problem("{name: branin, dim: 7}"), "configs/x.yaml:1: problems[0]"),
        (
            with_problem("{name: ackley5, dim: 3}"),
            "problems[0].dim: must be 5 for 'ackley5', got 3",
        ),
        (with_problem("ackley0"), "problems[0].dim: must be an integer from 1 to 1000, got 0"),
        (with_problem("ackley99999"), "got 99999"),
        (
            with_problem("{name: branin, noise_std: -0.1}"),
            "noise_std: expected a finite number >= 0",
        ),
        (with_problem("{name: branin, colour: 1}"), "problems[0].colour: unknown key"),
        (with_problem(""), "problems: must not be empty"),
        (
            SMALL.replace("seeds: 2", "seeds: 0"),
            "configs/x.yaml:3: seeds: expected an integer from 1",
        ),
        (SMALL.replace("seeds: 2", "seeds: [1, 2, 1]"), "seeds[2]: must be distinct"),
        (SMALL.replace("seeds: 2", "seeds: [-1]"), "seeds[0]: expected an integer from 0"),
        (
            SMALL.replace("seeds: 2", "seeds: 100000000"),
            "seeds: expected an integer from 1 to 10000",
        ),
        (
            SMALL.replace("budget: 20", "budget: 3"),
            "at least the initial design of branin, 4, got 3",
        ),
        (SMALL + "initial: {n: 21}", "configs/x.yaml:4: budget: must be at least"),
        (SMALL + "initial: {design: sobl}", "did you mean 'sobol'?"),
        (
            SMALL + "executor: process",
            "executor: expected one of serial, threads, processes, dask, got",
        ),
        (SMALL + "executor: {address: 'tcp://a:1'}", "executor.address: must be left out"),
        (SMALL + "executor: {kind: serial, workers: 2}", "executor.workers: must be 1 or left out"),
        (SMALL + "executor: {workers: 0}", "executor.workers: expected an integer from 1 to 10000"),
        (
            SMALL + "executor: {kind: dask, address: 'a:1', workers: 2}",
            "executor.workers: must be left",
        ),
        (SMALL + "name: a/b", "configs/x.yaml:5: name: expected text of letters"),
        (SMALL + "name: ..", "configs/x.yaml:5: name: expected text of letters"),
        (SMALL + 'output: ""', "output: expected text of 1 to 400 printable characters, got ''"),
        (SMALL + 'output: "a\\0b"', "output: expected text of 1 to 400 printable characters"),
        (SMALL + "bugdet: 3", "configs/x.yaml:5: bugdet: unknown key; did you mean 'budget'?"),
        (
            SMALL + "acquisition: ei",
            "acquisition: unknown key; it belongs below method: method: {acquisition: ...}",
        ),
        (SMALL.replace("budget: 20\n", ""), "configs/x.yaml:1: budget: this key is missing"),
        (SMALL.replace("problems: [branin]\n", ""), "problems: must name what is minimised, or"),
        (SMALL.replace("[random]", "[]"), "methods: must not be empty"),
        (SMALL.replace("seeds: 2", "seeds: []"), "seeds: must not be empty"),
        (SMALL + "executor: threads", "executor: must be serial, processes or dask for studies"),
        (SMALL + "minimum: 1", "configs/x.yaml:5: minimum: must be left out beside problems"),
    ],
)
def test_impossible_campaigns(text: str, message: str) -> None:
    assert message in complaint(text)


def test_options_of_a_problem_are_those_of_its_family() -> None:
    families = [(n, o, v) for n, f in PROBLEMS.items() for o, v in f.options.items()]
    numeric = [(n, o, v) for n, o, v in families if type(v) in (int, float)]
    assert numeric, "no family has an option"
    for name, option, value in numeric:
        assert loads(with_problem(f"{{name: {name}, {option}: {value}}}")) == loads(
            with_problem(name)
        )
        assert f"problems[0].{option}: expected" in complaint(
            with_problem(f"{{name: {name}, {option}: much}}")
        )
        assert f"problems[0].{option}q: unknown key" in complaint(
            with_problem(f"{{name: {name}, {option}q: 1}}")
        )


def test_an_unusable_file_name_asks_for_a_name(tmp_path: Path) -> None:
    path = tmp_path / "my campaign.yaml"
    path.write_text(SMALL)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert caught.value.path == "name"
    assert "the file's own name, 'my campaign', cannot be used" in caught.value.message
    assert load(path, ["name=mine"]).name == "mine"


# --- Overrides, differences -------------------------------------------------------------------


def test_overrides() -> None:
    campaign = loads(
        with_method("{entropy: memel, label: mine}"),
        overrides=[
            "budget=50",
            "seeds=3",
            "methods[1].samples=50",
            "methods[1].entropy.n_moments=20",
            "methods[1].sampler.thin=5",
            "executor.workers=2",
            "initial.n=7",
            "problems[0].noise_std=1e-2",
            "output=a/b",
        ],
    )
    method = campaign.methods[1]
    assert (campaign.budget, campaign.seeds, campaign.output) == (50, (0, 1, 2), "a/b")
    assert method.entropy == EntropyConfig("memel", {"n_moments": 20})
    assert (method.samples, method.sampler.thin, method.label) == (50, 5, "mine")
    assert campaign.executor == Executor("processes", 2)
    assert campaign.initial.n == 7
    assert campaign.problems[0].noise_std == 0.01


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("methods[0].samples=no", "--set methods[0].samples=no: methods[0].samples: expected an"),
        ("methods[3].samples=1", "methods[3]: no such item: methods has length 1, counted from 0"),
        ("methods[0].sampels=1", "methods[0].sampels: unknown key; did you mean 'samples'?"),
        ("budget=2", "budget: must be at least the initial design of branin, 4, got 2"),
        (
            "executor.kind=dusk",
            "executor.kind: expected one of serial, threads, processes, dask, got 'dusk'",
        ),
    ],
)
def test_overrides_that_cannot_be(assignment: str, message: str) -> None:
    found = complaint(SMALL, assignment)
    assert found.startswith(f"--set {assignment}: ")
    assert message in found


def test_differences_name_the_keys_of_a_changed_campaign() -> None:
    old = to_dict(loads(with_method("{entropy: memel, label: mine}")))
    new = to_dict(
        loads(with_method("{entropy: {n_moments: 12}, label: mine}"), overrides=["seeds=3"])
    )
    assert differences(old, new) == [
        "methods[1].entropy.n_moments: was 10, is 12",
        "seeds[2]: was absent, is 2",
    ]


def test_from_dict_validates() -> None:
    data = to_dict(loads(SMALL))
    data["methods"][0]["samples"] = "many"
    with pytest.raises(ConfigError, match=r"^header: methods\[0\]\.samples: expected an integer"):
        from_dict(data, "header")


# --- The schema -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema()
    assert json.loads(json.dumps(schema, allow_nan=False)) == schema
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_shipped_files_satisfy_the_schema(validator: Any) -> None:
    for path in CONFIGS:
        validator.validate(yaml.safe_load(path.read_text()))
        validator.validate(to_dict(load(path)))


@pytest.mark.parametrize(
    "text",
    [
        SMALL + "bugdet: 3",
        SMALL.replace("seeds: 2", "seeds: -2"),
        SMALL.replace("budget: 20\n", ""),
        with_method("{samples: 0}"),
        with_method("{entropy: {name: mm, n_moments: 3}}"),
        with_method("{entropy: {name: memel, n_moments: 1}}"),
        with_method("{label: a/b}"),
        with_problem("brannin"),
        with_problem("{name: branin, colour: 1}"),
        SMALL + "executor: process",
        SMALL + "noise_std: much",
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(validator: Any, text: str) -> None:
    complaint(text)
    assert not validator.is_valid(yaml.safe_load(text))


def test_every_key_is_described() -> None:
    schema = json_schema()
    assert all(entry["description"] for entry in schema["properties"].values())
    assert schema["properties"]["noise_std"]["default"] == 0.0
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"budget"}


# --- Malformed files --------------------------------------------------------------------------


def verdict(mutant: Mutant) -> Campaign | str:
    """The campaign, or the error; any other exception is a failure."""
    try:
        return loads(mutant.text, mutant.source)
    except ConfigError as error:
        return str(error)


def test_200_malformed_files_are_errors_of_one_screen() -> None:
    accepted = []
    for mutant in mutants(200, seed=0):
        found = verdict(mutant)
        if isinstance(found, Campaign):
            accepted.append(mutant.kind)
            assert from_dict(to_dict(found)) == found
            continue
        lines = found.split("\n")
        assert len(lines) <= 20, mutant
        assert max(map(len, lines)) <= 200, mutant
        assert lines[0].startswith(mutant.source), mutant
        assert all(line.isprintable() for line in lines), mutant
    assert len(accepted) <= 10, accepted


@pytest.mark.slow
def test_3000_malformed_files_are_errors_of_one_screen() -> None:
    found = [verdict(mutant) for mutant in mutants(3000, seed=1)]
    errors = [error for error in found if isinstance(error, str)]
    assert len(errors) >= 0.95 * len(found)
    assert max(len(line) for error in errors for line in error.split("\n")) <= 200


def test_the_schema_accepts_what_the_loader_accepts(validator: Any) -> None:
    """So that no editor underlines a good file: checked on those mutants that still load."""
    for mutant in mutants(50, seed=2):
        if isinstance(verdict(mutant), Campaign):
            validator.validate(yaml.safe_load(mutant.text))
    for text in (
        with_method("{entropy: {n_moments: 12}}"),
        with_method(
            "{acquisition: fitbo, surrogate: matern32, sampler: {thin: 3}, resolution: 0.1}"
        ),
        with_problem("ackley7, {name: ackley, dim: 3, noise_std: 1}"),
        SMALL + "executor: {kind: dask, address: 'tcp://host:8786'}\ninitial: latin",
    ):
        loads(text)
        validator.validate(yaml.safe_load(text))


def test_mutants_are_reproducible_and_of_every_kind() -> None:
    made = mutants(200, seed=0)
    assert made[:50] == mutants(50, seed=0)
    assert made[:50] != mutants(50, seed=1)
    assert {mutant.kind for mutant in made} == set(MUTATIONS)
    originals = {path.read_text() for path in FILES}
    assert not originals & {mutant.text for mutant in made}
    assert len({mutant.text for mutant in made}) > 170
