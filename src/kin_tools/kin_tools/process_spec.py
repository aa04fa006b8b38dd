"""What a launch file asks for: one process, with everything that is needed to start it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from kin_tools.parameter_values import ParameterValue

__all__ = ["OUTPUTS", "ProcessSpec", "RosArguments", "check_node_name", "join_namespace"]

#: Values of ``output``, as in ``ros2 launch``.
OUTPUTS = ("screen", "log", "both", "own_log", "full")

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LONGEST_NAME = 255


def check_node_name(name: str) -> None:
    """Raise ValueError unless ``name`` can be the name of a node."""
    if not _TOKEN.match(name) or len(name) > _LONGEST_NAME:
        raise ValueError(
            f"'{name}' cannot be a node name: letters, digits and _ only, no digit first"
        )


def join_namespace(base: str | None, namespace: str | None) -> str | None:
    """The absolute namespace that ``namespace`` means inside ``base``; None if neither is given.

    Raises:
        ValueError: The result is not a valid namespace.
    """
    if base is None and namespace is None:
        return None
    if namespace is None:
        joined = base or ""
    elif not base or namespace.startswith("/"):
        joined = namespace
    else:
        joined = ("" if base == "/" else base) + "/" + namespace
    if joined != "/":
        joined = joined.rstrip("/")
    if not joined.startswith("/"):
        joined = "/" + joined
    tokens = [] if joined == "/" else joined[1:].split("/")
    if any(not _TOKEN.match(token) for token in tokens) or len(joined) > _LONGEST_NAME:
        raise ValueError(f"'{joined}' is not a valid namespace")
    return joined


@dataclass(frozen=True)
class RosArguments:
    """The ROS side of a node's command line.

    Attributes:
        name: The node's name, None to leave it to the program.
        namespace: The absolute namespace, None to leave it to the program.
        parameters: Files and sets of inline values in the order of the launch file.
        remaps: Pairs of from and to.
    """

    name: str | None = None
    namespace: str | None = None
    parameters: tuple[Path | Mapping[str, ParameterValue], ...] = ()
    remaps: tuple[tuple[str, str], ...] = ()

    @property
    def full_name(self) -> str | None:
        """Namespace and name, if both are known."""
        if self.name is None or self.namespace is None:
            return None
        return f"{self.namespace.rstrip('/')}/{self.name}"

    @property
    def graph_name(self) -> str | None:
        """The name in the ROS graph, if it does not depend on the program alone."""
        return None if self.name is None else f"{(self.namespace or '').rstrip('/')}/{self.name}"

    def words(self, folder: Path, stem: str) -> list[str]:
        """The arguments; inline parameters are written to files in ``folder``.

        They go through files, under the node's full name where it is known and the wildcard
        otherwise, because that is what ``ros2 launch`` does and it decides what overrides what.
        """
        words = ["--ros-args"]
        if self.name is not None:
            words += ["-r", f"__node:={self.name}"]
        if self.namespace is not None:
            words += ["-r", f"__ns:={self.namespace}"]
        for number, block in enumerate(self.parameters):
            if isinstance(block, Path):
                file = block
            else:
                file = folder / f"{stem}.params{number}.yaml"
                content = {self.full_name or "/**": {"ros__parameters": dict(block)}}
                file.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
            words += ["--params-file", str(file)]
        for source, target in self.remaps:
            words += ["-r", f"{source}:={target}"]
        return words


@dataclass(frozen=True)
class ProcessSpec:
    """One process to start.

    Attributes:
        label: What its lines of output are marked with; unique in the plan.
        program: The program and its own arguments.
        ros: ROS arguments; None for a plain executable.
        environment: Variables on top of the runner's.
        output: One of :data:`OUTPUTS`.
        respawn: Start it again whenever it ends.
        respawn_delay: Time before that [s].
        sigterm_timeout: Time from SIGINT to SIGTERM when it does not end [s].
        sigkill_timeout: Time from SIGTERM to SIGKILL [s].
    """

    label: str
    program: tuple[str, ...]
    ros: RosArguments | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    output: str = "log"
    respawn: bool = False
    respawn_delay: float = 0.0
    sigterm_timeout: float = 5.0
    sigkill_timeout: float = 5.0

    @property
    def file_stem(self) -> str:
        """The label as part of a file name."""
        return re.sub(r"[^A-Za-z0-9_.-]", ".", self.label).strip(".") or "process"

    def command(self, folder: Path) -> list[str]:
        """The whole command line; files that it needs are written to ``folder``."""
        extra = self.ros.words(folder, self.file_stem) if self.ros else []
        return [*self.program, *extra]
