"""Habits that a machine can check: tests, pre-commit, CITATION.cff."""

import ast
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
#: Packages in which every module has a test file of its own.
MIRRORED = (
    *("kin_core", "kin_ros", "kin_bags", "kin_dashboard", "kin_monitor", "kin_tools"),
    "kin_testing",
)
#: Names with an underscore that are no private ones: of named tuples, and of the interpreter.
PUBLIC = {"_asdict", "_fields", "_make", "_replace", "_base_executable", "_exit"}
SYSTEMS = {"kin_solvers", "ft_controller", "gpu_kinematics", "continuum_ik", "hier_ik"}


def test_pre_commit_runs_checks_of_this_clone_only():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    usage = (ROOT / "kinstack").read_text()
    for hook in repository["hooks"]:
        program, command, *arguments = hook["entry"].split()
        assert program == "./kinstack"
        assert f"./kinstack {command}" in usage
        assert all((ROOT / name).exists() for name in arguments if not name.startswith("-"))
        assert hook["language"] == "system"


def test_the_citation_names_the_five_papers_as_the_readme_does():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert {paper["notes"] for paper in citation["references"]} == SYSTEMS
    readme = (ROOT / "README.md").read_text()
    rows = dict(re.findall(r"^\| \[(\w+)\]\(src/\S+ (\|.*)$", readme, re.M))
    for paper in citation["references"]:
        row = rows[paper["notes"]]
        assert f"*{paper['title']}*" in row
        assert all(author["family-names"] in row for author in paper["authors"])


def test_every_module_has_a_test_file():
    missing = [
        str(module.relative_to(ROOT))
        for name in MIRRORED
        for module in sorted((ROOT / "src" / name / name).glob("*.py"))
        if module.stem != "__init__"
        and not (ROOT / "src" / name / "test" / f"test_{module.name}").exists()
    ]
    assert not missing


def private_names(tree):
    """What a test reads, sets or imports that belongs to somebody else alone, by line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PACKAGES:
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            names = [] if own else [node.attr]
        else:
            continue
        for name in names:
            if re.match(r"_[^_]", name) and name not in PUBLIC:
                yield node.lineno, name


PACKAGES = {folder.name for folder in (ROOT / "src").iterdir()}


def test_no_test_reads_private_fields():
    found = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for pattern in ("src/*/test/*.py", "*/test/*.py")
        for file in sorted(ROOT.glob(pattern))
        for line, name in private_names(ast.parse(file.read_text()))
    ]
    assert not found


def test_the_check_of_private_fields_sees_them():
    text = "import kin_ros\nfrom kin_ros.client import _DOUBT\nnode._worker.busy = node.x._y\n"
    assert {name for _, name in private_names(ast.parse(text))} == {"_DOUBT", "_worker", "_y"}
    text = "self._own = pair._replace(a=1)\nnode.__class__\nfrom viser.infra import _infra\n"
    assert not list(private_names(ast.parse(text)))
