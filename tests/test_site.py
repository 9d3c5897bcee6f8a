"""What the documentation makes of the schema; its build, with the extra `docs`, is in CI."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from fitbo.config.campaign import json_schema

SITE = Path(__file__).parents[1] / "docs" / "site"


@pytest.fixture(scope="module")
def keys() -> Any:
    spec = importlib.util.spec_from_file_location("keys", SITE / "keys.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def properties(schema: Any) -> set[str]:
    """The names of all properties in a schema, at any depth."""
    if isinstance(schema, list):
        return set().union(*map(properties, schema))
    if not isinstance(schema, dict):
        return set()
    named = schema.get("properties", {})
    inner = [value for key, value in schema.items() if key != "properties"]
    return set(named) | properties(list(named.values())) | properties(inner)


def test_every_key_of_the_schema_is_on_the_page(keys: Any) -> None:
    schema = json_schema()
    page = keys.keys_page(schema, "1.2.3")
    assert len(properties(schema)) > 50
    for name in properties(schema):
        assert f"| `{name}` |" in page, name
    assert "fitbo 1.2.3" in page


def test_rows_say_what_a_key_holds(keys: Any) -> None:
    lines = keys.keys_page(json_schema(), "1").splitlines()
    (budget,) = (line for line in lines if line.startswith("| `budget` |"))
    assert budget.startswith("| `budget` | integer from 1 to 1,000,000 | required | evaluations")
    (choices,) = (line for line in lines if line.startswith("| `choices` |"))
    assert "| required | for `categorical`:" in choices
    rows = [line for line in lines if line.startswith("| `")]
    assert all(row.replace("\\|", "").count("|") == 5 for row in rows)
    assert not any("<" in row for row in rows)
