"""The benchmark harness: order of runs, ratios, JSON, refusals."""

import io
import json
import subprocess
import sys

import pytest

from benchmarks.harness import Bench, Sample


def bench(tmp_path, **options):
    return Bench("demo", folder=tmp_path, out=io.StringIO(), **options)


def test_variants_run_in_turn(tmp_path):
    order = []
    samples = bench(tmp_path).interleave(
        {"a": lambda: order.append("a"), "b": lambda: order.append("b")}, repeats=4, warmup=2
    )
    assert order == ["a", "b"] * 6
    assert len(samples["a"].times) == len(samples["b"].times) == 4


def test_ratio_is_the_median_of_pairs_and_shrugs_off_drift():
    ours = Sample((1.0, 2.0, 4.0))
    theirs = Sample((10.0, 20.0, 40.0))
    assert ours.ratio(theirs) == 10.0
    assert theirs.ratio(ours) == 0.1
    assert ours.median == 2.0
    assert ours.low <= ours.median <= ours.high


def test_json_contract(tmp_path):
    run = bench(tmp_path)
    run.result("speed", 3, "Hz")
    run.result("ratio", 2.5)
    answer = json.loads(run.json_line())
    assert answer["bench"] == "demo"
    assert answer["results"] == {"speed": 3.0, "ratio": 2.5}
    assert {"cpu", "cores", "python", "packages"} <= set(answer["machine"])


def test_no_figure_twice_and_no_nan(tmp_path):
    run = bench(tmp_path)
    run.result("x", 1)
    with pytest.raises(ValueError, match="twice"):
        run.result("x", 2)
    with pytest.raises(ValueError, match="finite"):
        run.result("y", float("nan"))


def test_chart_and_table(tmp_path):
    run = bench(tmp_path)
    with run.chart("line") as axes:
        axes.plot([1, 2], [3, 4])
    assert (tmp_path / "demo_line.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "demo_line.svg").read_text()
    run.table("title", ("name", "value"), [("a", 1.23456), ("bb", True)])
    assert "1.235" in run.out.getvalue()
    assert "yes" in run.out.getvalue()


def test_unknown_benchmark_gets_a_sentence():
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks", "nonsense"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "there is no benchmark 'nonsense'" in ran.stderr
