"""A call's journal: that the settings of an acquisition come back from what it writes down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fitbo.config.build import build_settings
from fitbo.inference.settings import Settings
from fitbo.minimise.journal import described
from fitbo.study import Study


@pytest.mark.parametrize(
    "given",
    [
        {"acquisition": "remaining", "moments": 4},
        {"acquisition": "mes-marginal", "entropy": "mm"},
        {"acquisition": "jes"},
        {"acquisition": "mes"},
        {"acquisition": "lcb", "beta": 2.0},
    ],
)
def test_the_settings_of_an_acquisition_come_back(given: dict[str, Any], tmp_path: Path) -> None:
    study = Study([(0, 1), (0, 1)], Settings(**given))
    settings = build_settings(described(tmp_path / "run.jsonl", study, 9))
    for name in ("acquisition", "moments", "beta"):
        assert getattr(settings, name) == getattr(study.settings, name)
    assert "entropy" not in given or type(settings.entropy).__name__.lower() == given["entropy"]
