"""The bet on an option of numba: it has a date, and is logged when it does not hold."""

import importlib.util
from datetime import date

from numba.core.options import DefaultOptions

from kin_solvers import compiled


def test_the_bet_has_a_date_to_be_removed_by():
    assert date(2026, 11, 18) < compiled.REMOVE_BY <= date(2028, 12, 31)


def test_a_lost_bet_is_logged_and_kernels_are_still_compiled(monkeypatch, caplog):
    monkeypatch.delattr(DefaultOptions, "_nrt", raising=False)
    spec = importlib.util.spec_from_file_location("compiled_again", compiled.__file__)
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    assert compiled.REMOVE_BY.isoformat() in caplog.text

    @again.maker
    def add(a: float, b: float) -> float:
        return a + b

    assert add(1.0, 2.0) == 3.0
