"""The packages that all others use say what they offer."""

import importlib
import sys
from pathlib import Path

import pytest

import kin_core
import kin_ros


@pytest.mark.parametrize("package", [kin_core, kin_ros], ids=lambda package: package.__name__)
def test_every_module_is_offered_and_offers_only_what_it_has(package, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # which kin_core.interrupts replaces
    modules = {path.stem for path in Path(package.__file__).parent.glob("*.py")} - {"__init__"}
    assert modules == set(package.__all__)
    for name in modules:
        module = importlib.import_module(f"{package.__name__}.{name}")
        assert module.__doc__, name
        missing = [one for one in module.__all__ if not hasattr(module, one)]
        assert not missing, f"{name}: {missing}"
