"""Solvers that tests share; each test takes a copy."""

import sys
from pathlib import Path

import pytest

from continuum_ik import TIGHT, ContinuumSolver

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def _tight():
    return ContinuumSolver(tolerance=TIGHT)


@pytest.fixture(scope="session")
def _loose():
    return ContinuumSolver()


@pytest.fixture
def tight(_tight):
    return _tight.copy()


@pytest.fixture
def loose(_loose):
    return _loose.copy()
