"""The files by which a project is used and cited: pre-commit, CITATION.cff."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
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
