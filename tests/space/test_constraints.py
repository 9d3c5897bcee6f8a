"""Expressions against Python's own evaluation of them, and everything that must be refused."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from fitbo.space.constraints import LONGEST, NUMBER, ConstraintError, parse

KINDS = {"x": NUMBER, "n": NUMBER, "c": ("a", "b", "c"), "k": (1, 2, 4), "on": (True, False)}
PYTHON = {name: getattr(math, name) for name in ("sqrt", "exp", "log", "sin", "cos")}


def columns(size: int = 200) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    pick = {name: np.array(KINDS[name], dtype=object) for name in ("c", "k", "on")}
    return {
        "x": rng.uniform(0.1, 3.0, size),
        "n": rng.integers(1, 9, size),
        **{name: choices[rng.integers(0, len(choices), size)] for name, choices in pick.items()},
    }


@pytest.mark.parametrize(
    "text",
    [
        "x + n <= 5",
        "1 < x * n <= 4 < n + 3",
        "x - n / 2 > -1 and not n == 3",
        "n // 2 == n / 2 or x ** 2 > 2",
        "n % 3 != 0 and (x < 1 or n > 4)",
        "abs(x - 1.5) < 0.5",
        "min(x, n, 2) + max(x, 1) >= 2",
        "sqrt(x) + exp(-x) + log(x) + sin(x) * cos(x) < 1.7",
        "c == 'a' or c != 'b' and x < 1",
        "c in ['a', 'b'] and n not in (1, 2, 3)",
        "'b' == c or n in {5, 6}",
        "k * x <= 3 and k in [1, 4]",
        "k < 4 and +x > 0",
        "on == True or x < 1",
        "not (x < 1 or not n > 2)",
    ],
)
def test_expressions_mean_what_python_means(text: str) -> None:
    data = columns()
    got = parse(text, KINDS)(data)
    names = {"abs": abs, "min": min, "max": max, **PYTHON}
    rows = [{name: column[i] for name, column in data.items()} for i in range(len(data["x"]))]
    code = compile(text, "test", "eval")
    truth = [bool(eval(code, {"__builtins__": {}}, {**names, **row})) for row in rows]  # noqa: S307
    assert got.tolist() == truth
    assert 0 < sum(truth) < len(truth)


def test_what_is_undefined_is_not_true_and_neither_is_its_contrary() -> None:
    data = {"x": np.array([-1.0, 0.0, 2.0]), "n": np.array([0, 0, 1])}
    kinds = {"x": NUMBER, "n": NUMBER}
    for text, expected in [
        ("log(x) < 5", [False, True, True]),
        ("not log(x) < 5", [False, False, False]),
        ("x <= 0 or log(x) < 1", [True, True, True]),
        ("n / n == 1", [False, False, True]),
        ("n / n != 1", [False, False, False]),
        ("x >= 0 and not sqrt(x) > 1", [False, True, False]),
        ("sqrt(x) in [0, 1]", [False, True, False]),
    ]:
        assert parse(text, kinds)(data).tolist() == expected, text


def test_powers_do_not_explode() -> None:
    data = {"x": np.array([2.0, 0.5])}
    assert parse("x ** 9 ** 9 ** 9 > 1", {"x": NUMBER})(data).tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x <", "is not a valid expression: invalid syntax"),
        ("", "is not a valid expression"),
        ("x = 1", "is not a valid expression"),
        ("x", "cannot use 'x': a comparison, such as x . y <= 1, was expected"),
        ("x + y <= 1", "cannot use 'y': the parameters are x, n, c, k, on"),
        ("c < 3", "cannot use 'c': it is a category"),
        ("c == 'z'", r"cannot use \"'z'\": c is one of \['a', 'b', 'c'\]"),
        ("c in ['a', 'q']", "c is one of"),
        ("c == x", "compare the category c with a choice of it"),
        ("c in x", "'in' takes a list of constants"),
        ("x is 1", "Is is not a comparison"),
        ("x < True", "cannot use 'True': a number was expected"),
        ("x < 'a'", "a number was expected"),
        ("x < 1j", "a number was expected"),
        ("x < 1" + "0" * 400, "a number must not exceed 1e.300"),
        ("x & 1 < 2", "the operators are"),
        ("x @ n < 2", "the operators are"),
        ("~n < 2", "the operators are"),
        ("__import__('os').system('true') < 1", "the functions are abs, sqrt"),
        ("().__class__ < 1", "a number was expected"),
        ("x.real < 1", "a number was expected"),
        ("x[0] < 1", "a number was expected"),
        ("(lambda: 1)() < 1", "the functions are"),
        ("[x for x in x] < 1", "a number was expected"),
        ("(y := 1) < 2", "a number was expected"),
        ("x < (1 if n else 2)", "a number was expected"),
        ("f'{x}' < 1", "a number was expected"),
        ("abs(x, n) < 1", "abs takes one number"),
        ("min(x) < 1", "min takes two or more"),
        ("max(x, n, key=abs) < 1", "max takes two or more"),
        ("max(*x, n) < 1", "a number was expected"),
        ("-" * 60 + "x < 1", "nested more than 40 deep"),
        ("(" * 300 + "x" + ")" * 300 + " < 1", "is not a valid expression"),
        ("x < 1 " * LONGEST, f"at most {LONGEST} characters"),
    ],
)
def test_anything_else_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        parse(text, KINDS)


def test_a_constraint_travels_to_another_process() -> None:
    expression = pickle.loads(pickle.dumps(parse("x < 1", KINDS)))  # noqa: S301
    assert expression({"x": np.array([0.5, 2.0])}).tolist() == [True, False]


def test_a_negative_choice() -> None:
    kinds = {"c": (-1, "auto", 2.5), "k": (-1, 1)}
    c = np.array([-1, "auto", 2.5], dtype=object)
    assert parse("c == -1", kinds)({"c": c}).tolist() == [True, False, False]
    assert parse("c not in [-1, 2.5]", kinds)({"c": c}).tolist() == [False, True, False]
    with pytest.raises(ConstraintError, match="k is one of"):
        parse("k != -5", kinds)


def test_a_name_that_python_spells_otherwise() -> None:
    """The micro sign of a keyboard is not the Greek letter that Python takes it for."""
    micro = "\N{MICRO SIGN}"
    constraint = parse(f"2 * {micro} > 1", {micro: NUMBER})
    assert constraint({micro: np.array([0.4, 0.6])}).tolist() == [False, True]
