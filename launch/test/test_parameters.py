"""Parameters of every node as ``ros2 param`` sees them: described, bounded, dumped and loaded."""

import importlib

import pytest
import yaml
from rclpy.parameter import Parameter, ParameterType

from kin_testing.malformed_parameters import ParameterDraw

NODES = (
    *("kin_solvers.node:KinSolversNode", "ft_controller.node:FtController"),
    *("ft_controller.simulator_node:ArmSimulator", "gpu_kinematics.node:GpuKinematicsNode"),
    *("continuum_ik.node:ContinuumNode", "hier_ik.node:HierNode"),
    *("kin_monitor.node:StackMonitor", "kin_dashboard.node:Dashboard"),
)
NUMBERS = (
    *(ParameterType.PARAMETER_INTEGER, ParameterType.PARAMETER_INTEGER_ARRAY),
    *(ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_DOUBLE_ARRAY),
)


@pytest.fixture(params=NODES, ids=lambda where: where.partition(":")[2])
def make(request, ros):
    """Makes the node, which declares its parameters and does nothing else; with a file of them."""
    module, _, name = request.param.partition(":")
    kind = getattr(importlib.import_module(module), name)
    made = []

    def build(file=None):
        words = [] if file is None else ["--ros-args", "--params-file", str(file)]
        made.append(kind(context=ros.context, cli_args=words))
        return made[-1]

    yield build
    for node in made:
        node.destroy_node()


def values(node):
    """Every parameter as a message: what other clients get."""
    names = node.list_parameters([], 0).names
    return {p.name: p.get_parameter_value() for p in node.get_parameters(list(names))}


def plain(value):
    """A value as ``ros2 param dump`` writes it."""
    fields = {
        ParameterType.PARAMETER_BOOL: value.bool_value,
        ParameterType.PARAMETER_INTEGER: value.integer_value,
        ParameterType.PARAMETER_DOUBLE: value.double_value,
        ParameterType.PARAMETER_STRING: value.string_value,
        ParameterType.PARAMETER_BOOL_ARRAY: list(value.bool_array_value),
        ParameterType.PARAMETER_INTEGER_ARRAY: list(value.integer_array_value),
        ParameterType.PARAMETER_DOUBLE_ARRAY: list(value.double_array_value),
        ParameterType.PARAMETER_STRING_ARRAY: list(value.string_array_value),
    }
    return fields[value.type]


def dump(node, file):
    """What ``ros2 param dump`` writes: names with dots become mappings in mappings."""
    tree = {}
    for name, value in values(node).items():
        *outer, last = name.split(".")
        place = tree
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = plain(value)
    content = {node.get_fully_qualified_name(): {"ros__parameters": tree}}
    file.write_text(yaml.dump(content, default_flow_style=False))
    return file


def test_every_parameter_is_described_and_every_number_has_a_range(make):
    node = make()
    for name in values(node):
        told = node.describe_parameter(name)
        assert told.description, name
        ours = not name.startswith("qos_overrides.")  # those are rclpy's
        if ours and told.type in NUMBERS:
            ends = told.floating_point_range or told.integer_range
            assert len(ends) == 1, name
            assert ends[0].from_value < ends[0].to_value, name


@pytest.mark.parametrize("seed", range(2))
def test_a_dump_is_loaded_as_what_it_was(make, seed, tmp_path):
    """Of the defaults, and of values that were drawn and accepted."""
    node = make()
    declared = {name for name in values(node) if not name.startswith("qos_overrides.")}
    draw = ParameterDraw(seed, [node.describe_parameter(name) for name in sorted(declared)])
    changes = 0
    for number in range(100 if seed else 0):
        for one in draw.changes(number):
            if one.name in declared:
                known = Parameter.from_parameter_msg(one) if one.value.type < 10 else None
                if known is not None and known.type_ is not Parameter.Type.BYTE_ARRAY:
                    changes += node.set_parameters([known])[0].successful
    assert changes or not seed
    before = values(node)
    again = make(dump(node, tmp_path / "dump.yaml"))
    after = values(again)
    assert {name: after[name] for name in declared} == {name: before[name] for name in declared}
    assert again.parameters == node.parameters


def test_a_dump_of_another_node_changes_nothing(make, tmp_path):
    node = make()
    file = dump(node, tmp_path / "dump.yaml")
    file.write_text(file.read_text().replace(node.get_fully_qualified_name(), "/somebody_else", 1))
    assert make(file).parameters == node.parameters
