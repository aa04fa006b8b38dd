"""What a person reads after a regression."""

import pytest
from compared_messages import joints, verdict

from kin_bags import report
from kin_bags.compare import Tolerances, compare


def test_first_and_worst_and_report():
    rules = Tolerances({"/t": {"absolute": 0.1}})
    old = [("/t", joints([0.0, 0.0])), ("/t", joints([0.0, 0.0]))]
    new = [("/t", joints([0.2, 0.0])), ("/t", joints([0.0, 5.0]))]
    result = compare(old, new, rules)
    assert (result.first.message, result.first.path) == (0, "position[0]")
    assert (result.worst.message, result.worst.path) == (1, "position[1]")
    assert result.worst.excess == pytest.approx(50)
    words = report.text(result)
    assert "message 1, position[1]: expected 0.0, got 5.0 (50 times what is allowed)" in words
    assert words.endswith("verdict: CHANGED")
    assert report.text(compare(old, old, rules)).endswith("verdict: as expected")


def test_plot(tmp_path):
    result = verdict(joints([0.0, 1.0]), joints([0.2, 1.0]), {})
    assert report.plot(result, tmp_path / "p" / "x.png")
    assert (tmp_path / "p" / "x.png").read_bytes()[:4] == b"\x89PNG"
