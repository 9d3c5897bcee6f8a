from types import SimpleNamespace

import pytest

from .problems import make_problem


@pytest.fixture
def problem() -> SimpleNamespace:
    return make_problem(n=14, d=3, M=5)
