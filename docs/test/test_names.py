"""Docstrings and comments name only what exists: modules, their contents, files, identifiers."""

import ast
import keyword
import re
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
#: What is text in a source, so that a # in it begins no comment, or a comment.
TEXT_OR_COMMENT = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|'{3}(?:\\.|[^\\])*?'{3}'''
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*""",
    re.DOTALL,
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
WORD = re.compile(r"\w+")
#: A file of Python.
FILE = re.compile(r"(?<![\w./{*<-])((?:\w+/)*\w+\.py)\b")


class Source:
    """What a file of Python holds, of a single walk over it.

    Attributes:
        words: Docstrings and comments with their lines.
        names: What the module has.
        inner: Methods, fields and attributes of each of its classes.
        arguments: What its functions are given, which may be named like a module.
        vocabulary: Every identifier, and every word of its texts.
    """

    def __init__(self, path):
        text = path.read_text()
        self.words, self.names, self.inner, self.arguments = [], set(), {}, set()
        self.vocabulary, texts = set(), []
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False):
                self.words.append((node.body[0].lineno, node.body[0].value.value))
            if isinstance(node, ast.ClassDef):
                self.inner[node.name] = members(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.names.add(node.id)
            elif isinstance(node, ast.alias):
                self.names.add((node.asname or node.name).split(".")[0])
                self.vocabulary.update(node.name.split("."))
            elif isinstance(node, ast.ImportFrom):
                self.vocabulary.update((node.module or "").split("."))
            elif isinstance(node, ast.arg):
                self.arguments.add(node.arg)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
                continue
            fields = (getattr(node, name, None) for name in node._fields)
            self.vocabulary.update(word for word in fields if isinstance(word, str))
        self.names |= set(self.inner)
        documents = {words for _, words in self.words}
        for words in texts:
            if words not in documents:
                self.vocabulary.update(WORD.findall(words))
        line, at = 1, 0
        for match in TEXT_OR_COMMENT.finditer(text):
            if match[0].startswith("#"):
                line, at = line + text.count("\n", at, match.start()), match.start()
                self.words.append((line, match[0]))


source = cache(Source)


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
    names, inner = source(module).names, source(module).inner
    if rest[0] not in names:
        return False
    return len(rest) == 1 or rest[0] not in inner or known_member(rest[1], rest[0])


def known_member(name, owner):
    """Whether any class of that name, or one that it inherits from, has it."""
    for path in SOURCES:
        inner = source(path).inner
        if owner in inner:
            if name in inner[owner]:
                return True
            bases = inner[owner] - {owner}
            if any(base in every_class() and known_member(name, base) for base in bases):
                return True
    return False


@cache
def every_class():
    return {name for path in SOURCES for name in source(path).inner}


@cache
def vocabulary():
    """Every identifier of the code, and every word of its texts, data and interfaces."""
    found = {path.stem for path in SOURCES}
    for path in set(SOURCES) - {Path(__file__)}:  # which names what does not exist, below
        found |= source(path).vocabulary
    found.update(keyword.kwlist)
    for pattern in ("src/**/*.msg", "src/**/*.srv", "src/**/*.action", "launch/**/*.*ml"):
        for path in ROOT.glob(pattern):
            found.update(WORD.findall(path.read_text()))
    return found


@cache
def files():
    return {path.relative_to(ROOT).as_posix() for path in SOURCES} | {
        path.relative_to(ROOT).as_posix() for path in ROOT.glob("*.py")
    }


def stale_in(path):
    """What a file names that does not exist, as "line: name"."""
    own = PACKAGES.get(path.parent.name)
    for line, words in source(path).words:
        for dotted in OURS.findall(words):
            if not exists(dotted.rstrip(".")) and not (path.parents[2] / dotted).exists():
                yield f"{line}: {dotted}"
        for quoted in QUOTED.findall(words):
            first, *rest = quoted.strip(".").split(".")
            if first in PACKAGES:
                continue  # looked at above
            if rest and own is not None and (own / f"{first}.py").is_file():
                other = rest[0] in ("py", "yaml", "json") or first in source(path).arguments
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
