"""Writes docs/parameters.md from the nodes' parameter classes.

./kinstack shell python docs/parameters.py
"""

import dataclasses
import importlib
from pathlib import Path

from kin_ros.parameters import ParameterSet, describe

PAGE = Path(__file__).with_suffix(".md")

#: Node, its parameter class, and the page that explains it.
NODES = (
    ("kin_solvers", "kin_solvers.parameters:CuikParameters", "cuik.md"),
    ("ft_controller", "ft_controller.parameters:FtParameters", "ft.md"),
    ("arm_simulator", "ft_controller.parameters:SimulatorParameters", "ft.md"),
    ("gpu_kinematics", "gpu_kinematics.parameters:GpuKinematicsParameters", "delta.md"),
    ("continuum_ik", "continuum_ik.node:ContinuumParameters", "continuum.md"),
    ("hier_ik", "hier_ik.node:HierParameters", "hier.md"),
    ("loop_closer", "hier_ik.parameters:CloserParameters", "hier.md"),
    ("robot_states", "kin_ros.robot_state_node:RobotStateParameters", "doors.md"),
    ("stack_monitor", "kin_monitor.parameters:MonitorParameters", "dashboard.md"),
    ("dashboard", "kin_dashboard.parameters:DashboardParameters", "dashboard.md"),
)

HEAD = """\
# Parameters

Every parameter of every node, written by `docs/parameters.py` from the classes that declare them; a
test holds that the page is up to date. The full stack sets some of them in `launch/config`. A value
of the wrong type or out of its range is refused with a sentence, and the node keeps what it had.
*At the start* means that it cannot be changed while the node runs.

Every node also has these:

"""


def table(rows):
    """A Markdown table of parameters."""
    lines = ["| parameter | default | allowed | meaning |", "|---|---|---|---|"]
    for row in rows:
        when = " *At the start.*" if row.spec.read_only else ""
        default = str(row.default).lower() if isinstance(row.default, bool) else row.default
        if isinstance(default, tuple):
            default = "[" + ", ".join(map(str, default)) + "]"
        shown = f"`{default}`" if default not in ("", "[]") else "none"
        meaning = row.spec.description.replace("|", "\\|")
        lines.append(f"| `{row.name}` | {shown} | {row.allowed} | {meaning}.{when} |")
    return "\n".join(lines) + "\n"


def page():
    """The text of the page."""
    common = {field.name for field in dataclasses.fields(ParameterSet)}
    parts = [HEAD + table(describe(ParameterSet).values())]
    for node, where, explained in NODES:
        module, _, name = where.partition(":")
        rows = describe(getattr(importlib.import_module(module), name))
        own = [row for row in rows.values() if row.name not in common]
        parts.append(f"## {node}\n\nSee [{explained}]({explained}).\n\n{table(own)}")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
