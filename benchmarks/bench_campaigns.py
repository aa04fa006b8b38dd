"""Random tests that are small in ``./kinstack test``, at the size of a campaign.

They are the same tests with the same seeds: more cases, and thresholds in proportion. A case that
fails ends its test, and counts as one failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from defusedxml import ElementTree

from benchmarks.harness import Bench

ROOT = Path(__file__).resolve().parents[1]
#: Packages that have such tests.
FOLDERS = ("src/continuum_ik/test", "src/hier_ik/test")


def main(bench: Bench) -> None:
    """Run them; each test's cases and time, and how many failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        words = ["-m", "pytest", "-q", "-m", "campaign", "-p", "no:cacheprovider"]
        environment = {**os.environ, "KINSTACK_CAMPAIGNS": "" if bench.quick else "1"}
        subprocess.run(
            [sys.executable, *words, f"--junitxml={report}", *FOLDERS],
            cwd=ROOT,
            env=environment,
            stdout=sys.stderr,
            check=False,  # what failed stands in the report
        )
        tests = list(ElementTree.parse(report).iter("testcase"))
    rows, failed = [], 0
    for test in tests:
        cases = {p.get("name"): p.get("value") for p in test.iter("property")}.get("cases", "0")
        bad = any(test.find(tag) is not None for tag in ("failure", "error"))
        failed += bad
        rows.append((test.get("name"), int(cases), float(test.get("time")), not bad))
    bench.table("campaigns", ("test", "cases", "s", "passed"), rows)
    bench.result("campaign_tests", len(rows))
    bench.result("campaign_cases", sum(row[1] for row in rows))
    bench.result("campaign_failed", failed, "", "floor 0")
