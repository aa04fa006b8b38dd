"""The documentation builds without a warning; its links lead somewhere; what it names exists."""

import ast
import importlib
import os
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
import yaml
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
#: Text for people outside docs/.
READMES = [
    ROOT / "README.md",
    ROOT / "examples" / "README.md",
    ROOT / "launch" / "README.md",
    *sorted(ROOT.glob("src/*/README.md")),
]
TEXTS = [*PAGES, *READMES]
#: Names of the test files; the folders that a set-up makes hold copies.
TESTS = {
    path.name
    for place in ("src/*", "src/interop", "launch", "benchmarks", "docker", "docs", "examples")
    for path in ROOT.glob(f"{place}/test/test_*.py")
}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(path):
    return str(path.relative_to(ROOT))


class Page(HTMLParser):
    """Links, sources and anchors of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        for key in ("id", "name"):
            if found.get(key):
                self.anchors.add(found[key])
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        loaded = found.get("src") or found.get("href")
        turned_to = found.get("rel") in ("canonical", "next", "prev")
        if tag in ("img", "script", "link") and loaded and not turned_to:
            self.loads.append(loaded)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages of the built site by path."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert "WARNING" not in built.stdout + built.stderr, built.stderr
    return {path: Page(path) for path in folder.rglob("*.html")}


def test_links_of_the_site_lead_somewhere(site):
    broken = []
    for path, page in site.items():
        if path.name == "404.html":  # its links are absolute, for a server
            continue
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                broken.append(f"{path.name} -> {link}")
            elif (
                parts.fragment
                and target in site
                and parts.fragment
                not in {
                    *site[target].anchors,
                    "__search",
                }
            ):
                broken.append(f"{path.name} -> {link} (no such heading)")
    assert not broken, broken


def test_the_site_loads_nothing_from_elsewhere(site):
    foreign = {load for page in site.values() for load in page.loads if urlsplit(load).netloc}
    assert not foreign


def test_every_public_name_is_in_the_reference(site):
    by_name = {path.name: page for path, page in site.items() if path.parent.name == "api"}
    for package in ("kin_solvers", "ft_controller", "gpu_kinematics", "continuum_ik", "hier_ik"):
        page = by_name[f"{package}.html"]
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing) or not getattr(thing, "__doc__", None):
                continue
            full = {f"{package}.{name}", f"{thing.__module__}.{name}"}
            assert full & page.anchors, f"docs/api/{package}.md does not show {name}"


@pytest.mark.parametrize("path", READMES, ids=name_of)
def test_links_of_readmes_lead_somewhere(path):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL)
    for link in LINK.findall(text):
        parts = urlsplit(link)
        if not parts.scheme:
            assert (path.parent / parts.path).exists(), f"{name_of(path)} -> {link}"


def test_every_picture_is_used_and_has_a_text():
    used = set()
    for path in TEXTS:
        for text, link in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", path.read_text()):
            picture = (path.parent / link).resolve()
            assert picture.is_file(), f"{name_of(path)}: {link}"
            assert len(text) > 5, f"{name_of(path)}: {link} has no text for those who cannot see it"
            used.add(picture)
    assert used == set((DOCS / "images").iterdir())


PICTURES = runpy.run_path(str(DOCS / "pictures.py"))


def test_every_picture_has_a_maker():
    known = {f"dashboard_{name}" for name in PICTURES["SCREENSHOTS"]}
    known |= {*PICTURES["CHARTS"], *PICTURES["DRAWN"]}
    assert {path.stem for path in (DOCS / "images").iterdir()} == known
    taken = (ROOT / "launch" / "test" / "test_stack_shown.py").read_text()
    for name in PICTURES["SCREENSHOTS"]:
        assert f'picture("{name}")' in taken, name
    for file, words in PICTURES["CHARTS"].values():
        assert words in (ROOT / "benchmarks" / file).read_text(), (file, words)


@pytest.mark.parametrize("name", PICTURES["DRAWN"])
def test_drawn_pictures_are_drawn_as_they_are_shown(name, tmp_path):
    """The same size, and not blank; pixels differ between versions of the fonts."""
    path = tmp_path / f"{name}.png"
    PICTURES["DRAWN"][name](path)
    with Image.open(path) as made, Image.open(DOCS / "images" / f"{name}.png") as shown:
        assert made.size == shown.size
        ink = np.asarray(made.convert("L")) < 200
        there = np.asarray(shown.convert("L")) < 200
    assert 0.5 < ink.mean() / there.mean() < 2.0


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_commands_that_are_named_exist(path):
    text = path.read_text()
    script = (ROOT / "kinstack").read_text()
    known = set(re.findall(r"^  \./kinstack (\w+)", script, flags=re.MULTILINE))
    for command in re.findall(r"(?<![\w/])\./kinstack (\w+)", text):
        assert command in known, f"./kinstack {command}"
    arguments = {"sigterm_timeout", "sigkill_timeout"}  # of the runner itself
    for launch in (ROOT / "launch").glob("*.launch.xml"):
        arguments |= set(re.findall(r'<arg name="(\w+)"', launch.read_text()))
    for argument in re.findall(r"(?<!-r )(?<![\w:/_])(\w+):=", text):
        assert argument in arguments, f"{argument}:= is an argument of no launch file"
    for script_path in re.findall(
        r"(?<![\w/])((?:examples|docker|benchmarks)/[\w./-]+\.\w+)", text
    ):
        assert (ROOT / script_path).exists(), script_path
    for kind, name in re.findall(r"kin_interfaces/(msg|srv|action)/(\w+)", text):
        assert (ROOT / f"src/kin_interfaces/{kind}/{name}.{kind}").exists(), name
    for test in re.findall(r"\btest_\w+\.py\b", text):
        assert test in TESTS, test


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_code_in_the_text_is_whole(path):
    """Python parses and imports what exists; YAML loads."""
    for language, block in re.findall(r"```(\w+)\n(.*?)```", path.read_text(), flags=re.DOTALL):
        if language == "python":
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom):
                    module = importlib.import_module(node.module)
                    for alias in node.names:
                        if not hasattr(module, alias.name):  # then it must be a module
                            importlib.import_module(f"{node.module}.{alias.name}")
        elif language in ("yaml", "yml"):
            assert yaml.safe_load(block)


def test_the_page_of_parameters_is_up_to_date():
    made = runpy.run_path(str(DOCS / "parameters.py"))
    assert made["PAGE"].read_text() == made["page"](), (
        "run ./kinstack shell python docs/parameters.py"
    )
