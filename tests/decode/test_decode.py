"""The decoder on small dataclasses: types, YAML's traps, hostile files, overrides, schema."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
import yaml

from fitbo.decode import (
    Choice,
    ConfigError,
    Key,
    Pattern,
    Range,
    Registry,
    check,
    decode,
    differences,
    encode,
    json_schema,
    nodes_of,
    override,
    parse,
    read,
)

SHAPES: dict[str, dict[str, float]] = {"ball": {"radius": 1.0}, "box": {"width": 1.0, "depth": 2.0}}


def shape_keys(name: str) -> Mapping[str, Key]:
    if name not in SHAPES:
        raise ValueError(f"name must be one of {', '.join(SHAPES)}, got {name!r}")
    return {option: Key(float, value) for option, value in SHAPES[name].items()}


@dataclass(frozen=True)
class Shape:
    """A shape."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    bare: ClassVar[str] = "name"
    registry: ClassVar[Registry] = Registry(SHAPES, shape_keys, lambda name: name)

    def __post_init__(self) -> None:
        if any(value <= 0 for value in self.options.values()):
            worst = min(self.options, key=lambda option: self.options[option])
            raise ValueError(f"{worst} must be positive, got {self.options[worst]}")


@dataclass(frozen=True)
class Real:
    """A parameter of a search."""

    low: Annotated[float, "lower bound"]
    high: Annotated[float, "upper bound"]

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"high must exceed low, {self.low}, got {self.high}")


@dataclass(frozen=True)
class Study:
    """A file of another kind than a campaign."""

    objective: str
    space: dict[str, Real]
    budget: Annotated[int, "evaluations", Range(1)]
    seeds: int | tuple[int, ...] = (0,)
    rate: float = 0.5
    kind: Literal["fast", "slow"] = "fast"
    colour: Annotated[str, Choice({"red": 1, "blue": 2})] = "red"
    tag: Annotated[str, Pattern("[a-z]+", "small letters")] | None = None
    either: int | str | tuple[float, ...] = 0
    shape: Shape = field(default_factory=lambda: Shape("ball"))
    quiet: bool = False

    def __post_init__(self) -> None:
        check(self)


HEAD = "objective: f\nspace: {x: {low: 0, high: 1}}\nbudget: 3\n"


def study(extra: str = "", *overrides: str) -> Study:
    node = parse(HEAD + extra, "s.yaml")
    for assignment in overrides:
        node = override(node, Study, assignment)
    made = decode(node, Study)
    assert isinstance(made, Study)
    return made


def complaint(extra: str = "", *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        study(extra, *overrides)
    return str(caught.value)


@pytest.mark.parametrize(
    ("extra", "name", "value"),
    [
        ("rate: 1e-3", "rate", 1e-3),  # text by YAML 1.1
        ("rate: 2.5E+1", "rate", 25.0),
        ("rate: 3", "rate", 3.0),
        ("rate: 1_000", "rate", 1000.0),
        ("seeds: 3", "seeds", 3),
        ("seeds: [5, 2]", "seeds", (5, 2)),
        ("either: 7", "either", 7),
        ("either: x", "either", "x"),
        ("either: [1, 2e1]", "either", (1.0, 20.0)),
        ("tag: ~", "tag", None),
        ("tag: 'on'", "tag", "on"),
        ("colour: blue", "colour", "blue"),
        ("quiet: yes", "quiet", True),
        ("shape: box", "shape", Shape("box", {"width": 1.0, "depth": 2.0})),
        ("shape: {name: box, depth: 5}", "shape", Shape("box", {"width": 1.0, "depth": 5.0})),
    ],
)
def test_values(extra: str, name: str, value: Any) -> None:
    found = getattr(study(extra), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("rate: '1e-3'", "s.yaml:4: rate: expected a finite number, got '1e-3'"),
        ("rate: .nan", "s.yaml:4: rate: expected a finite number, got .nan"),
        ("rate: -.inf", "s.yaml:4: rate: expected a finite number, got -.inf"),
        ("rate: 1e999", "s.yaml:4: rate: expected a finite number, got '1e999'"),
        ("rate: on", "s.yaml:4: rate: expected a finite number, got on"),
        ("rate: 010", "s.yaml:4: rate: expected a finite number, got '010'"),
        ("seeds: [1, true]", "s.yaml:4: seeds[1]: expected an integer, got true"),
        ("seeds: [1, 2.0]", "s.yaml:4: seeds[1]: expected an integer, got 2.0"),
        ("seeds: 1.5", "s.yaml:4: seeds: expected an integer or a list, got 1.5"),
        ("seeds: 12:30", "s.yaml:4: seeds: expected an integer or a list, got '12:30'"),
        ("seeds: {}", "s.yaml:4: seeds: expected an integer or a list, got a mapping"),
        (
            "tag: no",
            "s.yaml:4: tag: expected text of small letters, got the boolean no: "
            "put it in quotes, 'no'",
        ),
        ("tag: A", "s.yaml:4: tag: expected text of small letters, got 'A'"),
        (
            "kind: fst",
            "s.yaml:4: kind: expected one of fast, slow, got 'fst'; did you mean 'fast'?",
        ),
        ("colour: 3", "expected one of red, blue, got the number 3: put it in quotes, '3'"),
        ("quiet: 1", "s.yaml:4: quiet: expected true or false, got 1"),
        ("either: {}", "s.yaml:4: either: expected an integer or text or a list, got a mapping"),
        ("rte: 1", "s.yaml:4: rte: unknown key; did you mean 'rate'?"),
        (
            "shape:\n  name: box\n  dpth: 1",
            "s.yaml:6: shape.dpth: unknown key; did you mean 'depth'?",
        ),
        (
            "shape:\n  name: box\n  depth: x",
            "s.yaml:6: shape.depth: expected a finite number, got 'x'",
        ),
        ("shape:\n  name: box\n  depth: -1", "s.yaml:6: shape.depth: must be positive, got -1.0"),
        ("shape: bax", "s.yaml:4: shape: must be one of ball, box, got 'bax'"),
        ("shape: {radius: 1}", "s.yaml:4: shape.name: this key is missing: expected text"),
        ("shape: {nmae: box}", "s.yaml:4: shape.nmae: unknown key; did you mean 'name'?"),
        ("shape: {}", "s.yaml:4: shape.name: this key is missing: expected text"),
        ("shape: 3", "s.yaml:4: shape: expected text, got the number 3"),
        ("shape: [1]", "s.yaml:4: shape: expected text or a mapping with name, got a list"),
        ("budget: 4", "s.yaml:4: the key 'budget' is given twice, first on line 3"),
        ("<<: 3", "s.yaml:4: expected a mapping or a list of mappings to merge by <<"),
        ("? [a]\n: b", "s.yaml:4: expected a name as a key, got a list or a mapping"),
        ("rate: !!float 'x'", "s.yaml:4: rate: expected a finite number, got 'x'"),
        ("rate: !!python/name:os.system ''", "the tag '!!python/name:os.system' is not allowed"),
        ("rate: *x", "s.yaml:4: not valid YAML: found undefined alias 'x'"),
        ("\trate: 1", "that cannot start any token; indent by spaces"),
    ],
)
def test_errors_name_the_line_the_key_and_what_was_expected(extra: str, message: str) -> None:
    assert message in complaint(extra)


def test_an_error_inside_a_dict_of_dataclasses() -> None:
    text = "objective: f\nspace:\n  x: {low: 0, high: 1}\n  y: {low: 2,\n     high: 1}\nbudget: 3"
    with pytest.raises(ConfigError) as caught:
        decode(parse(text, "s.yaml"), Study)
    assert str(caught.value) == "s.yaml:5: space.y.high: must exceed low, 2.0, got 1.0"
    assert (caught.value.where, caught.value.path) == ("s.yaml:5", "space.y.high")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


def test_anchors_and_merge_keys() -> None:
    text = """
objective: f
space:
  x: &unit {low: 0, high: 1}
  y: {<<: *unit, high: 2}
  z: {<<: [{high: 5}, *unit]}
  w: *unit
budget: 3
"""
    space = decode(parse(text, "s.yaml"), Study).space
    assert space == {"x": Real(0, 1), "y": Real(0, 2), "z": Real(0, 5), "w": Real(0, 1)}
    reference = yaml.safe_load(text)["space"]
    assert {name: (real.low, real.high) for name, real in space.items()} == {
        name: (real["low"], real["high"]) for name, real in reference.items()
    }


def test_an_error_in_an_anchor_is_reported_where_it_stands() -> None:
    text = "space:\n  x: &u {low: 0, high: a}\n  y: {<<: *u}\nobjective: f\nbudget: 3"
    with pytest.raises(ConfigError, match=r"^s\.yaml:2: space\.x\.high: expected a finite number"):
        decode(parse(text, "s.yaml"), Study)


def laughs(levels: int) -> str:
    rows = [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(["l0: &l0 [x, x]", *rows])


def merges() -> str:
    """Quadratic: every line copies all the keys of the first."""
    wide = ", ".join(f"k{i}: 1" for i in range(1000))
    return f"a: &a {{{wide}}}\n" + "\n".join(f"b{i}: {{<<: *a}}" for i in range(1000))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment",
        "- a",
        "text",
        "a: 1\n---\nb: 2",
        "a: \x00",
        "a: \x1b[31m",
        'a: "\\UFFFFFFFF"',
        '"\\ud800": 1',
        "%YAML 1." + "9" * 5000,
        "&a [*a]",
        "a: &a {b: *a}",
        "a: &a {<<: *a}",
        laughs(12),
        merges(),
        "[" * 5000,
        "{a: " * 5000,
        "- " * 5000,
        "budget: " + "9" * 5000,
        "budget: -" + "9" * 5000 + ".5",
        "x" * 5000 + ": 1",
        "\u202e\u200b: 1",
        "é: 1\n" * 3,
        "'" + "\n" * 500,
    ],
    ids=lambda text: repr(text[:20]),
)
def test_hostile_texts_are_errors_of_one_screen(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        decode(parse(text, "s.yaml"), Study)
    lines = str(caught.value).split("\n")
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 200
    assert str(caught.value).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: 1\nb: \xff\n", "s.yaml:2: expected text in UTF-8, got the byte 0xff"),
        ("a: 1".encode("utf-16"), "s.yaml:1: expected text in UTF-8, got the byte 0xff"),
        (b"#" * (1 << 19), "s.yaml: expected a file of at most 262144 bytes"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert message in str(caught.value).replace("\n    ", " ")


@pytest.mark.parametrize("name", [".", "absent.yaml", "a\0b", "x" * 5000])
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"{tmp_path}/{name}")
    assert caught.value.message.startswith("the file cannot be read: ")
    assert len(str(caught.value).split("\n")) <= 20


def test_a_byte_order_mark_is_no_key(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.encode())
    assert decode(parse(read(path), "s"), Study).budget == 3


@pytest.mark.parametrize(
    ("assignment", "name", "value"),
    [
        ("budget=50", "budget", 50),
        ("rate=1e-3", "rate", 1e-3),
        ("seeds=[4, 5]", "seeds", (4, 5)),
        ("space.x.high=7", "space", {"x": Real(0, 7)}),
        ("shape.radius=2", "shape", None),
        ("shape.name=box", "shape", Shape("box", {"width": 1.0, "depth": 2.0})),
        ("objective=a=b", "objective", "a=b"),
        ("space={y: {low: 0, high: 2}}", "space", {"y": Real(0, 2)}),
    ],
)
def test_overrides(assignment: str, name: str, value: Any) -> None:
    if value is None:  # a name is needed before its options
        assert study("shape: ball", assignment).shape.options == {"radius": 2.0}
    else:
        assert getattr(study("", assignment), name) == value


def test_overrides_reach_into_lists_and_leave_what_shares_an_anchor() -> None:
    text = "objective: f\nspace: {x: &u {low: 0, high: 1}, y: *u}\nbudget: 3\nseeds: [1, 2]"
    node = parse(text, "s.yaml")
    for assignment in ("seeds[1]=9", "space.y.high=4"):
        node = override(node, Study, assignment)
    made = decode(node, Study)
    assert made.seeds == (1, 9)
    assert made.space == {"x": Real(0, 1), "y": Real(0, 4)}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("budget=ten", "--set budget=ten: budget: expected an integer >= 1, got 'ten'"),
        ("budget=", "--set budget=: budget: expected an integer >= 1, got nothing"),
        ("bugdet=3", "--set bugdet=3: bugdet: unknown key; did you mean 'budget'?"),
        ("shape.radus=3", "--set shape.radus=3: shape.radus: unknown key; did you mean 'radius'?"),
        ("space.x.hi=3", "--set space.x.hi=3: space.x.hi: unknown key"),
        ("seeds[0]=3", "seeds[0]: no such item: seeds is not a list in the file"),
        ("budget.x=3", "--set budget.x=3: budget: expected a mapping to set 'x' in"),
        ("budget", "--set budget: expected key.path=value"),
        ("a..b=1", "expected a path such as methods[0].samples, got 'a..b'"),
        ("=1", "expected a path such as"),
        ("seeds[-1]=1", "expected a path such as"),
        ("budget=[", "--set budget=[: not valid YAML"),
        ("budget=!!python/name:os.system x", "is not allowed"),
    ],
)
def test_overrides_that_cannot_be(assignment: str, message: str) -> None:
    found = complaint("shape: ball", assignment)
    assert message in found.replace("\n    ", " ")
    assert "s.yaml" not in found


def test_construction_in_python_checks_the_same_hints() -> None:
    good: dict[str, Any] = {"objective": "f", "space": {"x": Real(0, 1)}, "budget": 3}
    Study(**good)
    for name, value, message in (
        ("budget", 0, "budget must be an integer >= 1, got 0"),
        ("budget", True, "budget must be an integer >= 1, got True"),
        ("rate", math.nan, "rate must be a finite number, got nan"),
        ("seeds", (1, "a"), r"seeds\[1\] must be an integer, got 'a'"),
        ("kind", "x", "kind must be one of fast, slow, got 'x'"),
        ("space", {"x": 3}, "space must be a mapping, got {'x': 3}"),
    ):
        with pytest.raises(ValueError, match=message):
            Study(**{**good, name: value})


def test_encode_is_the_inverse_of_decode() -> None:
    made = study("seeds: 2\nshape: {name: box, depth: 5}\neither: [1, 2]\ntag: abc")
    data = encode(made)
    assert data["shape"] == {"name": "box", "width": 1.0, "depth": 5.0}
    assert decode(nodes_of(data, "<dict>"), Study) == made


def test_differences_name_each_key() -> None:
    old = {"a": 1, "b": {"c": [1, 2], "d": True}, "e": 0}
    new = {"a": 1.0, "b": {"c": [1, 3, 4], "d": 1}, "f": None}
    assert differences(old, new) == [
        "b.c[1]: was 2, is 3",
        "b.c[2]: was absent, is 4",
        "b.d: was True, is 1",
        "e: was 0, is absent",
    ]
    assert differences(old, old) == []


@pytest.mark.parametrize(
    ("extra", "valid"),
    [
        ("", True),
        ("seeds: 3", True),
        ("seeds: [3]", True),
        ("seeds: x", False),
        ("kind: slow", True),
        ("kind: quick", False),
        ("tag: ~", True),
        ("tag: A", False),
        ("shape: box", True),
        ("shape: {name: box, depth: 1}", True),
        ("shape: {name: ball, depth: 1}", False),
        ("shape: {depth: 1}", False),
        ("rate: x", False),
        ("other: 1", False),
        ("either: [x]", False),
    ],
)
def test_the_schema_agrees_with_the_decoder(extra: str, valid: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema(Study, "study")
    jsonschema.Draft202012Validator.check_schema(schema)
    data = yaml.safe_load(HEAD + extra)
    assert jsonschema.Draft202012Validator(schema).is_valid(data) is valid
    if valid:
        study(extra)
    else:
        complaint(extra)
