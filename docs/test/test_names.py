"""Docstrings and comments name only what exists: modules, their contents, files, identifiers."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {path.parent.name: path.parent for path in ROOT.glob("src/*/*/__init__.py")}
SOURCES = sorted(
    path
    for place in ("src", "launch", "benchmarks", "examples", "docs", "docker")
    for path in (ROOT / place).rglob("*.py")
    if not {"build", "__pycache__"} & set(path.parts) and not path.is_symlink()
)

#: A dotted name of ours, wherever it stands: ``kin_core.task.Task``.
OURS = re.compile(rf"(?<![\w./-])(?:{'|'.join(sorted(PACKAGES))})(?:\.[A-Za-z_]\w*)+(?![\w/-])")
#: Something in double quotes of the kind that stands for code.
QUOTED = re.compile(r"``([A-Za-z_][\w.]*)(?:\(\))?``")
#: A file of Python.
FILE = re.compile(r"(?<![\w./{*<-])((?:\w+/)*\w+\.py)\b")


def words_of(path):
    """Docstrings and comments with their lines."""
    text = path.read_text()
    tree = ast.parse(text)
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, kinds) and body and ast.get_docstring(node, clean=False):
            yield body[0].lineno, body[0].value.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@cache
def offered(path):
    """What a module holds: its names, and the names inside each of its classes."""
    names, inner = set(), {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            inner[node.name] = members(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
    return names | set(inner), inner


def members(made):
    """Methods, fields and attributes of a class."""
    found = {base.id for base in made.bases if isinstance(base, ast.Name)}
    for node in ast.walk(made):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def exists(dotted):
    """Whether a dotted name that begins with a package of ours leads somewhere."""
    first, *rest = dotted.split(".")
    place = PACKAGES[first]
    while rest and (place / rest[0]).is_dir():
        place /= rest.pop(0)
    if rest and (place / f"{rest[0]}.py").is_file():
        module = place / f"{rest.pop(0)}.py"
    else:
        module = place / "__init__.py"
    if not rest:
        return True
    names, inner = offered(module)
    if rest[0] not in names:
        return False
    return len(rest) == 1 or rest[0] not in inner or known_member(rest[1], rest[0])


def known_member(name, owner):
    """Whether any class of that name, or one that it inherits from, has it."""
    for path in SOURCES:
        _, inner = offered(path)
        if owner in inner:
            if name in inner[owner]:
                return True
            bases = inner[owner] - {owner}
            if any(base in every_class() and known_member(name, base) for base in bases):
                return True
    return False


@cache
def every_class():
    return {name for path in SOURCES for name in offered(path)[1]}


@cache
def vocabulary():
    """Every identifier of the code, and every word of its texts, data and interfaces."""
    found = {path.stem for path in SOURCES}
    for path in set(SOURCES) - {Path(__file__)}:  # which names what does not exist, below
        text = path.read_text()
        documents = {words for _, words in words_of(path)}
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                found.add(token.string)
        for node in ast.walk(ast.parse(text)):
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and value not in documents:
                found.update(re.findall(r"\w+", value))
    for pattern in ("src/**/*.msg", "src/**/*.srv", "src/**/*.action", "launch/**/*.*ml"):
        for path in ROOT.glob(pattern):
            found.update(re.findall(r"\w+", path.read_text()))
    return found


@cache
def arguments(path):
    """What the functions of a file are given, which may be named like a module."""
    return {node.arg for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.arg)}


@cache
def files():
    return {path.relative_to(ROOT).as_posix() for path in SOURCES} | {
        path.relative_to(ROOT).as_posix() for path in ROOT.glob("*.py")
    }


def stale_in(path):
    """What a file names that does not exist, as "line: name"."""
    own = PACKAGES.get(path.parent.name)
    for line, words in words_of(path):
        for dotted in OURS.findall(words):
            if not exists(dotted.rstrip(".")) and not (path.parents[2] / dotted).exists():
                yield f"{line}: {dotted}"
        for quoted in QUOTED.findall(words):
            first, *rest = quoted.strip(".").split(".")
            if first in PACKAGES:
                continue  # looked at above
            if rest and own is not None and (own / f"{first}.py").is_file():
                other = rest[0] in ("py", "yaml", "json") or first in arguments(path)
                if not other and not exists(f"{own.name}.{quoted}"):
                    yield f"{line}: {quoted}"
            elif not {first, *rest} <= vocabulary():
                yield f"{line}: {quoted}"
        for name in FILE.findall(words):
            if not name.startswith("path/") and not any(
                f"/{file}".endswith(f"/{name}") for file in files()
            ):
                yield f"{line}: {name}"


def test_docstrings_and_comments_name_what_exists():
    found = {path.relative_to(ROOT).as_posix(): list(stale_in(path)) for path in SOURCES}
    assert not {name: stale for name, stale in found.items() if stale}


def test_the_check_finds_what_is_stale(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        '"""See kin_core.task.Task, kin_core.task.Job and ``no_such_name``."""\n'
        "# as in no_such_file.py, or in kin_core/task.py; kin_ros.node.KinNode.every, .sometimes\n"
        "# kin_ros.node.KinNode.failed is inherited; kin_ros.node.KinNode.flew is not there\n"
    )
    assert list(stale_in(file)) == [
        "1: kin_core.task.Job",
        "1: no_such_name",
        "2: no_such_file.py",
        "3: kin_ros.node.KinNode.flew",
    ]
