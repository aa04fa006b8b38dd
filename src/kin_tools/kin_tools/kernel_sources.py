"""What compiled kernels are made of: every statement of our sources that they reach by name.

numba compiles into a kernel what it uses of other files (kernels, constants, types), but its cache
looks at the file of the kernel alone. The digest of a package covers the statements in which
something is compiled, whatever they name, whatever that names, and so on through all packages; of a
module of which anything is reached also the statements that bind no name, for they may change it.
Annotations are left out: numba does not look at them. What cannot be read from the text, such as a
global that another module sets, is not seen.
"""

from __future__ import annotations

import ast
import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

__all__ = ["drop_stale_kernels", "kernel_digests"]

#: A module and a name in it; without a name all of the module.
Symbol = tuple[str, str]

#: What makes code that stands nowhere: kernels of a package that uses any may use all of it.
_HIDERS = frozenset({"eval", "exec", "import_module", "spec_from_file_location"})


class _Uses(ast.NodeVisitor):
    """Collects the names that a statement uses, each with the attribute that is taken of it."""

    def __init__(self) -> None:
        self.found: set[tuple[str, str]] = set()

    def visit_Name(self, node: ast.Name) -> None:
        self.found.add((node.id, ""))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            self.found.add((node.value.id, node.attr))
        else:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """Its annotation is nobody's business."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        for part in filter(None, (node.target, node.value)):
            self.visit(part)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.decorator_list, node.args, *node.body):
            self.visit(part)


class _Module:
    """The statements at the top of a module by the names that they bind."""

    def __init__(self, name: str, file: Path, known: Mapping[str, Path]) -> None:
        self.name = name
        self.bound: dict[str, list[ast.stmt]] = {}
        self.imported: dict[str, Symbol] = {}
        self.nameless: list[ast.stmt] = []
        self._used: dict[ast.AST, set[Symbol]] = {}
        #: Every name and attribute in it.
        self.mentioned: set[str] = set()
        #: What the value of each name is made by: what is called, or what a function returns.
        self.makers: dict[str, list[ast.AST]] = {}
        tree = ast.parse(file.read_text(encoding="utf-8"))
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                self.mentioned.add(node.id)
            elif isinstance(node, ast.Attribute):
                self.mentioned.add(node.attr)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    self.imported[alias.asname or whole] = (whole, "")
            elif isinstance(node, ast.ImportFrom):
                above = package.rsplit(".", node.level - 1)[0] if node.level else ""
                base = ".".join(filter(None, (above, node.module)))
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    found = (inner, "") if inner in known else (base, alias.name)
                    self.imported[alias.asname or alias.name] = found
        for statement in tree.body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                continue
            names = set(_bindings(statement))
            makers = _makers(statement)
            for each in names:
                self.bound.setdefault(each, []).append(statement)
                self.makers.setdefault(each, []).extend(makers)
            plain = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.ClassDef)
            if not names or not isinstance(statement, plain):
                self.nameless.append(statement)

    def uses(self, node: ast.AST) -> set[Symbol]:
        """What a part of the module uses, of any module."""
        if node not in self._used:
            visitor = _Uses()
            visitor.visit(node)
            found = set()
            for name, attribute in visitor.found:
                base, inner = self.imported.get(name, (self.name, name))
                found.add((base, inner or attribute))
            self._used[node] = found
        return self._used[node]

    def statements(self) -> list[ast.stmt]:
        """All but the imports; some perhaps twice."""
        return [*self.nameless, *(s for some in self.bound.values() for s in some)]


def _bindings(node: ast.AST) -> Iterator[str]:
    """Names that a statement binds in its module, not those inside of functions."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    else:
        for child in ast.iter_child_nodes(node):
            yield from _bindings(child)


def _makers(statement: ast.stmt) -> list[ast.AST]:
    """What is called for the value of an assignment, or what a function returns."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        return [statement.value.func]
    if isinstance(statement, ast.FunctionDef):
        return [node for node in ast.walk(statement) if isinstance(node, ast.Return)]
    return []


class _Sources:
    """The modules of the workspace; those of packages without kernels are read when reached."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = files
        self._modules: dict[str, _Module] = {}
        self._origins: dict[Symbol, Symbol] = {}
        numba = {
            name.partition(".")[0]
            for name, file in files.items()
            if re.search(r"^\s*(import|from) numba\b", file.read_text("utf-8"), re.MULTILINE)
        }
        #: Packages that compile something, and their modules.
        self.packages = {
            package: [self[name] for name in files if name.partition(".")[0] == package]
            for package in sorted(numba)
        }
        #: Names that stand for a compiler: what a call of one gives, as in jit = njit(...), and
        #: functions that return one's work.
        self.compilers: set[Symbol] = set()
        before = -1
        while before < len(self.compilers):
            before = len(self.compilers)
            for module in (m for some in self.packages.values() for m in some):
                self.compilers |= {
                    (module.name, name)
                    for name, makers in module.makers.items()
                    if any(self._compiles(symbol) for m in makers for symbol in module.uses(m))
                }

    def __getitem__(self, name: str) -> _Module:
        if name not in self._modules:
            self._modules[name] = _Module(name, self._files[name], self._files)
        return self._modules[name]

    def _compiles(self, symbol: Symbol) -> bool:
        symbol = self._resolved(symbol)
        return symbol[0].partition(".")[0] == "numba" or symbol in self.compilers

    def _resolved(self, symbol: Symbol) -> Symbol:
        """Where a name is bound that was perhaps handed on by several imports."""
        if symbol not in self._origins:
            self._origins[symbol] = symbol  # also the end of imports in a circle
            base, name = symbol
            if f"{base}.{name}" in self._files:
                self._origins[symbol] = (f"{base}.{name}", "")
            elif base in self._files and name not in self[base].bound:
                origin = self[base].imported.get(name, symbol)
                self._origins[symbol] = self._resolved(origin)
        return self._origins[symbol]

    def reached(self, package: str) -> list[ast.stmt]:
        """The statements that the kernels of a package are made of."""
        every = [(m, statement) for m in self.packages[package] for statement in m.statements()]
        waiting = [(m, s) for m, s in every if any(map(self._compiles, m.uses(s)))]
        found: dict[ast.stmt, None] = {}
        while waiting:
            module, statement = waiting.pop()
            if statement in found:
                continue
            found[statement] = None
            waiting += [(module, other) for other in module.nameless]
            for symbol in module.uses(statement):
                base, name = self._resolved(symbol)
                if base in self._files:
                    names = [name] if name else list(self[base].bound)
                    waiting += [(self[base], s) for n in names for s in self[base].bound.get(n, ())]
        if found and any(m.mentioned & _HIDERS for m in self.packages[package]):
            found |= dict.fromkeys(statement for _, statement in every)
        return list(found)


def kernel_digests(folders: Mapping[str, Path]) -> dict[str, str]:
    """Return a digest for each package that has kernels.

    Args:
        folders: Packages, and the folders with their modules.
    """
    files = {}
    for package, folder in folders.items():
        for file in sorted(folder.rglob("*.py")):
            parts = [package, *file.relative_to(folder).with_suffix("").parts]
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    sources = _Sources(files)
    digests = {}
    for package in sources.packages:
        texts = sorted(ast.dump(statement) for statement in sources.reached(package))
        digests[package] = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    return digests


def drop_stale_kernels(cache: Path, folders: Mapping[str, Path]) -> None:
    """Drop compiled kernels that are made of statements which have changed.

    Leaves a stamp for each package: the digest of its kernels, and that of its modules.

    Args:
        cache: Folder with numba's cache in ``numba`` and the stamps in ``numba-stamps``.
        folders: Packages, and the folders with their modules.
    """
    stamps = cache / "numba-stamps"
    stamps.mkdir(exist_ok=True)
    modules = {name: sorted(folder.rglob("*.py")) for name, folder in folders.items()}
    own = {name: _digest(files) for name, files in modules.items() if files}
    old = {name: _read(stamps / name).splitlines() for name in own}
    if all(known[1:] == [own[name]] for name, known in old.items()):
        return  # nothing has changed, and nothing need be parsed
    kernels = kernel_digests(folders)
    for name, digest in own.items():
        made = kernels.get(name, "none")
        if old[name][:1] != [made]:
            # numba names a folder of its cache after the folder of the source and a digest of its
            # path.
            places = {file.parent.name for file in modules[name]}
            for cached in (cache / "numba").glob("*"):
                if cached.name.rpartition("_")[0] in places:
                    shutil.rmtree(cached, ignore_errors=True)
        draft = stamps / f"{name}.new"
        draft.write_text(f"{made}\n{digest}")
        draft.replace(stamps / name)


def _digest(files: Iterable[Path]) -> str:
    sha = hashlib.sha256()
    for file in files:
        sha.update(str(file).encode() + b"\0" + file.read_bytes() + b"\0")
    return sha.hexdigest()


def _read(file: Path) -> str:
    return file.read_text() if file.is_file() else ""
