"""From a ROS 2 XML launch file to the list of processes it asks for.

Scoping is that of ``ros2 launch`` (launch 3.4, launch_ros 0.26), also where it surprises:

- arguments, ``let`` and pushed namespaces live in one set of launch configurations; only a
  ``group`` gives it back as it was at its end;
- an ``include`` is no scope: its arguments, and what the included file sets, stay set after it;
- an ``arg`` takes a value that is already set under its name, whoever has set it;
- ``$(dirname)`` is the folder of the file that was entered last, so after an include, and in the
  arguments of the include, it is that of the included file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kin_core.errors import InvalidInput
from kin_core.yamls import LIMIT_BYTES, load_yaml
from kin_tools.errors import LaunchError
from kin_tools.launch_tree import Element, read_launch_file
from kin_tools.parameter_values import ParameterValue, ValueProblem, read_value
from kin_tools.process_spec import (
    OUTPUTS,
    ProcessSpec,
    RosArguments,
    check_node_name,
    join_namespace,
)
from kin_tools.substitution import (
    Scope,
    SubstitutionError,
    find_share,
    parse,
    parse_command,
    perform,
)

__all__ = ["Argument", "LaunchPlan", "load_launch_file", "show_arguments"]

_NAMESPACE = "ros_namespace"
_LIMIT_DEPTH = 32
_LIMIT_PROCESSES = 1000
#: Configurations that ``ros2 launch`` reads by itself, without an ``arg`` for them.
_WELL_KNOWN = {_NAMESPACE, "sigterm_timeout", "sigkill_timeout"}


@dataclass(frozen=True)
class Argument:
    """An argument that a launch file, or a file it includes, declares."""

    name: str
    description: str | None
    default: str | None
    conditional: bool


@dataclass
class LaunchPlan:
    """What a launch file asks for.

    Attributes:
        processes: In the order of the file.
        warnings: Sentences about what is allowed but probably not meant.
        unused: Arguments that were given and that no element reads.
    """

    processes: list[ProcessSpec] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    @property
    def node_names(self) -> list[str]:
        """Full names of the nodes whose name is given."""
        names = (spec.ros.graph_name for spec in self.processes if spec.ros)
        return [name for name in names if name]


@contextmanager
def _located(element: Element) -> Iterator[None]:
    """Give file and line to the errors of what is done for an element."""
    try:
        yield
    except (SubstitutionError, ValueProblem, ValueError) as error:
        raise element.error(str(error)) from None


class _Evaluator:
    """Walks through the elements in order and collects processes."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.plan = LaunchPlan()
        self.declared: set[str] = set()
        self.entered: list[Path] = []

    def text(self, element: Element, attribute: str) -> str:
        """The value of an attribute, substitutions replaced."""
        with _located(element):
            return perform(parse(element.attributes[attribute]), self.scope)

    def optional(self, element: Element, attribute: str) -> str | None:
        """The same of an attribute that may not be there."""
        return self.text(element, attribute) if attribute in element.attributes else None

    def boolean(self, element: Element, attribute: str, *, words: str = "") -> bool | None:
        """The truth of an attribute; None if it is not there.

        Args:
            element: Has it, or not.
            attribute: Its name.
            words: What else than ``true`` and ``1`` is true, and false, in turn.
        """
        value = (self.optional(element, attribute) or "").strip().lower()
        truths = ["true", "false", "1", "0", *words.split()]
        if attribute in element.attributes and value not in truths:
            known = f"{', '.join(truths[:-1])} or {truths[-1]}"
            raise element.error(f"'{attribute}' must be {known}, not '{value}'")
        return truths.index(value) % 2 == 0 if value else None

    def wanted(self, element: Element) -> bool:
        """Evaluate ``if`` and ``unless``."""
        return self.boolean(element, "if") is not False and not self.boolean(element, "unless")

    def run(self, elements: list[Element]) -> None:
        for element in elements:
            if self.wanted(element):
                getattr(self, f"do_{element.tag}")(element)

    def do_arg(self, element: Element) -> None:
        name = element.attributes["name"]
        self.declared.add(name)
        if name in self.scope.configurations:
            return
        if "default" not in element.attributes:
            description = element.attributes.get("description", "no description given")
            raise element.error(f"argument '{name}' ({description}) needs a value: {name}:=VALUE")
        self.scope.configurations[name] = self.text(element, "default")

    def do_let(self, element: Element) -> None:
        name = self.text(element, "name")
        self.scope.configurations[name] = self.text(element, "value")

    def do_group(self, element: Element) -> None:
        before = dict(self.scope.configurations)
        self.run(element.children)
        self.scope.configurations = before

    def do_push_ros_namespace(self, element: Element) -> None:
        with _located(element):
            joined = join_namespace(
                self.scope.configurations.get(_NAMESPACE), self.text(element, "namespace")
            )
        self.scope.configurations[_NAMESPACE] = joined or "/"

    def do_include(self, element: Element) -> None:
        file = Path(os.path.abspath(self.text(element, "file")))
        if file in self.entered or len(self.entered) >= _LIMIT_DEPTH:
            raise element.error(f"{file} is being included already")
        if file.suffix in (".py", ".yaml", ".yml"):
            raise element.error(f"{file.name}: only XML launch files can be read without ros2")
        try:
            root = read_launch_file(file)
        except LaunchError as error:
            if error.line:
                raise
            raise element.error(str(error)) from None
        self.scope.directory = file.parent
        given = [self.text(child, "name") for child in element.children]
        for missing in _required_arguments(root):
            if missing not in given:
                raise element.error(f"argument '{missing}' of {file.name} is not given")
        for child in element.children:
            self.do_let(child)
        self.enter(file, root)

    def enter(self, file: Path, root: Element) -> None:
        _check_templates(root)
        self.scope.directory = file.parent
        self.entered.append(file)
        self.run(root.children)
        self.entered.pop()

    def do_node(self, element: Element) -> None:
        with _located(element):
            name = self.optional(element, "name")
            if name is not None:
                check_node_name(name)
            namespace = join_namespace(
                self.scope.configurations.get(_NAMESPACE), self.optional(element, "namespace")
            )
            line = element.attributes.get("args", "")
            words = [perform(word, self.scope) for word in parse_command(line) if line.strip()]
        program = self.executable(element)
        ros = RosArguments(
            name=name,
            namespace=namespace,
            parameters=tuple(self.parameters(element)),
            remaps=tuple((self.text(r, "from"), self.text(r, "to")) for r in element.all("remap")),
        )
        if ros.graph_name in self.plan.node_names:
            self.plan.warnings.append(
                f"{element.file}:{element.line}: a second node is named {ros.graph_name}"
            )
        label = name or Path(program).name
        self.add(element, label, (program, *words), ros)

    def do_executable(self, element: Element) -> None:
        with _located(element):
            words = [perform(word, self.scope) for word in parse_command(element.attributes["cmd"])]
        if not words or not words[0]:
            raise element.error("'cmd' is empty")
        program = shutil.which(words[0])
        if program is None:
            raise element.error(f"there is no program '{words[0]}'")
        label = self.optional(element, "name") or Path(program).name
        self.add(element, label, (program, *words[1:]), None)

    def executable(self, element: Element) -> str:
        """The path of a node's program."""
        program = self.text(element, "exec")
        if "pkg" not in element.attributes:
            found = shutil.which(program)
            if found is None:
                raise element.error(f"there is no program '{program}'")
            return found
        package = self.text(element, "pkg")
        with _located(element):
            share = Path(find_share(package))
        folder = share.parent.parent / "lib" / package
        found = shutil.which(program, path=str(folder)) if program else None
        if found is None:
            there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
            has = f"it has {', '.join(there)}" if there else "it has none"
            raise element.error(f"package '{package}' has no executable '{program}'; {has}")
        return found

    def parameters(self, node: Element) -> Iterator[Path | Mapping[str, ParameterValue]]:
        """Files, and inline values with neighbours taken together, in order."""
        block: dict[str, ParameterValue] = {}
        for param in node.all("param"):
            if "from" not in param.attributes:
                self.inline_parameter(param, "", block)
                continue
            if block:
                yield block
                block = {}
            yield self.parameter_file(param)
        if block:
            yield block

    def inline_parameter(
        self, param: Element, prefix: str, block: dict[str, ParameterValue]
    ) -> None:
        name = prefix + self.text(param, "name")
        for child in param.children:
            self.inline_parameter(child, name + ".", block)
        if "value" in param.attributes:
            with _located(param):
                block[name] = read_value(param.attributes["value"], self.scope)

    def parameter_file(self, param: Element) -> Path:
        file = Path(os.path.abspath(self.text(param, "from")))
        try:
            content = load_yaml(file, longest_word=LIMIT_BYTES)
        except InvalidInput as error:
            raise param.error(str(error)) from None
        if not isinstance(content, dict) or not _holds_parameters(content):
            raise param.error(f"{file} holds no ros__parameters")
        return file

    def add(
        self, element: Element, label: str, program: tuple[str, ...], ros: RosArguments | None
    ) -> None:
        if len(self.plan.processes) >= _LIMIT_PROCESSES:
            raise element.error(f"more than {_LIMIT_PROCESSES} processes")
        output = self.text(element, "output") if "output" in element.attributes else "log"
        if output not in OUTPUTS:
            raise element.error(f"'output' must be one of {', '.join(OUTPUTS)}, not '{output}'")
        environment = {self.text(e, "name"): self.text(e, "value") for e in element.all("env")}
        if any(not name or "=" in name or "\0" in name for name in environment):
            raise element.error("the name of an environment variable cannot be empty or hold =")
        known = self.scope.configurations
        self.plan.processes.append(
            ProcessSpec(
                label=label,
                program=program,
                ros=ros,
                environment=environment,
                output=output,
                respawn=self.boolean(element, "respawn", words="yes no on off") or False,
                # ros2 launch takes no substitutions here, so neither do we.
                respawn_delay=_seconds(element, element.attributes, "respawn_delay", "0"),
                sigterm_timeout=_seconds(element, known, "sigterm_timeout", "5"),
                sigkill_timeout=_seconds(element, known, "sigkill_timeout", "5"),
            )
        )


def _seconds(element: Element, given: Mapping[str, str], name: str, default: str) -> float:
    text = given.get(name, default)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise element.error(f"'{name}' must be a number of seconds, not '{text}'")
    return value


def _holds_parameters(content: dict[object, object]) -> bool:
    return any(
        key == "ros__parameters" or (isinstance(value, dict) and _holds_parameters(value))
        for key, value in content.items()
    )


def _check_templates(element: Element) -> None:
    """Refuse wrong substitutions everywhere, also where no condition leads today."""
    for name, text in element.attributes.items():
        if element.tag != "arg" or name not in ("name", "description"):
            with _located(element):
                (parse_command if name in ("cmd", "args") else parse)(text)
    for child in element.children:
        _check_templates(child)


def _required_arguments(root: Element) -> Iterator[str]:
    """Arguments that an include must give: no default, and under no condition."""
    for element in root.children:
        if {"if", "unless"} & element.attributes.keys():
            continue
        if element.tag == "arg" and "default" not in element.attributes:
            yield element.attributes["name"]
        elif element.tag == "group":
            yield from _required_arguments(element)


def _unique_labels(processes: list[ProcessSpec]) -> list[ProcessSpec]:
    """Short labels where they are unique, full node names or numbers where they are not."""
    labels = [spec.label for spec in processes]
    longer = [
        spec.ros.graph_name[1:]
        if labels.count(spec.label) > 1 and spec.ros and spec.ros.graph_name
        else spec.label
        for spec in processes
    ]
    seen: dict[str, int] = {}
    out = []
    for spec, label in zip(processes, longer, strict=True):
        seen[label] = seen.get(label, 0) + 1
        numbered = f"{label}-{seen[label]}" if longer.count(label) > 1 else label
        out.append(replace(spec, label=numbered))
    return out


def load_launch_file(file: Path, arguments: Mapping[str, str] | None = None) -> LaunchPlan:
    """Read a launch file and all it includes; nothing is started.

    Args:
        file: The launch file.
        arguments: Values for its arguments.

    Raises:
        LaunchError: With file and line.
    """
    file = Path(os.path.abspath(file))
    arguments = dict(arguments or {})
    root = read_launch_file(file)
    scope = Scope(dict(arguments), file.parent)
    evaluator = _Evaluator(scope)
    evaluator.enter(file, root)
    plan = evaluator.plan
    plan.processes = _unique_labels(plan.processes)
    known = evaluator.declared | scope.read | _WELL_KNOWN
    known |= {argument.name for argument in show_arguments(file)}
    plan.unused = [name for name in arguments if name not in known]
    return plan


def show_arguments(file: Path) -> list[Argument]:
    """The arguments that a file and the files it includes declare, each name once.

    Files whose name cannot be told without starting (it depends on an argument) are left out.
    """
    found: dict[str, Argument] = {}
    _collect(Path(os.path.abspath(file)), found, conditional=False, entered=[])
    return list(found.values())


def _collect(
    file: Path, found: dict[str, Argument], *, conditional: bool, entered: list[Path]
) -> None:
    root = read_launch_file(file)
    scope = Scope({}, file.parent)

    def walk(elements: list[Element], conditional: bool) -> None:
        for element in elements:
            under = conditional or bool({"if", "unless"} & element.attributes.keys())
            if element.tag == "arg":
                name, default = element.attributes["name"], element.attributes.get("default")
                description = element.attributes.get("description")
                found.setdefault(name, Argument(name, description, default, under))
            elif element.tag == "group":
                walk(element.children, under)
            elif element.tag == "include":
                try:
                    inner = Path(os.path.abspath(perform(parse(element.attributes["file"]), scope)))
                    if inner not in entered and inner != file and len(entered) < _LIMIT_DEPTH:
                        _collect(inner, found, conditional=under, entered=[*entered, file])
                except (SubstitutionError, LaunchError):
                    continue

    walk(root.children, conditional)
