"""Wrong types and values at the library's border: its own errors, never a hang, nothing else."""

import datetime
import math
from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kin_core.errors import InvalidInput, LimitExceeded
from kin_core.task import Task
from kin_core.urdf import Closure, load_urdf
from kin_solvers import (
    Constant,
    CuikError,
    Loop,
    Mechanism,
    MechanismError,
    Motion,
    RequestError,
    Settings,
    SettingsError,
    SizeError,
    Variable,
    arm_from_dh,
    arm_from_urdf,
    library,
    load_mechanism,
    loop_from_dh,
    loops_from_urdf,
    solve,
    solve_all_ik,
)
from kin_solvers.mechanism import translation

FEW = Settings(sigma=0.3, max_boxes=20)
ARM = library.get("scara")
CURVE = solve(library.get("bennett"), Settings(sigma=0.5))
PART = solve(ARM, Settings(max_boxes=1))
STEPS = (Motion(0), Constant(translation(0, 1.0)), Motion(1), Constant(translation(0, -1.0)))
PAIR = (Variable("a"), Variable("b"))
DH = {"a": [1.0, 1.0], "alpha": [0.0, 0.5], "d": [0.0, 0.1]}
URDF_TEXT = """<robot name="r"><link name="base"/><link name="l1"/><link name="tip"/>
  <joint name="j1" type="revolute"><parent link="base"/><child link="l1"/><axis xyz="0 0 1"/>
    <origin xyz="1 0 0" rpy="0 0 0.5"/><limit lower="-3" upper="3" velocity="1"/></joint>
  <joint name="j2" type="revolute"><parent link="l1"/><child link="tip"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="1"/><mimic joint="j1" multiplier="1" offset="0"/></joint>
</robot>"""
URDF = load_urdf(URDF_TEXT.replace('<mimic joint="j1" multiplier="1" offset="0"/>', ""))
CLOSURE = Closure("c", "revolute", "tip", np.eye(4), "base", np.eye(4), np.array([0.0, 0.0, 1.0]))

#: Every public function with arguments that it takes; each is replaced by wrong ones in turn.
CALLS = {
    "Settings": (Settings, dict(vars(Settings()))),
    "Variable": (Variable, {"name": "a", "kind": "rotation", "lower": -1.0, "upper": 1.0}),
    "Motion": (Motion, {"variable": 0, "axis": 2, "sign": 1}),
    "Constant": (
        lambda matrix: Mechanism("m", PAIR, (Loop((*STEPS, Constant(matrix))),)),
        {"matrix": np.eye(4)},
    ),
    "Loop": (
        lambda **loop: Mechanism("m", PAIR, (Loop(**loop),)),
        {"factors": STEPS, "closure": "pose", "name": "loop"},
    ),
    "Mechanism": (
        Mechanism,
        {"name": "m", "variables": PAIR, "loops": (Loop(STEPS),), "target": None},
    ),
    "Mechanism.index": (ARM.index, {"name": "theta1"}),
    "Mechanism.with_ranges": (ARM.with_ranges, {"ranges": {"theta1": (0.0, 1.0)}}),
    "Mechanism.with_ranges, ends": (
        lambda ends: ARM.with_ranges({"theta1": ends}),
        {"ends": (0.0, 1.0)},
    ),
    "Mechanism.with_target": (ARM.with_target, {"target": np.eye(4)}),
    "Mechanism.product": (ARM.product, {"loop": 0, "q": np.zeros(4)}),
    "Mechanism.residual": (ARM.residual, {"q": np.zeros(4)}),
    "solve": (
        solve,
        {"mechanism": ARM, "settings": FEW, "task": Task(), "resume": PART, "boxes": None},
    ),
    "solve, boxes": (
        lambda lower, upper: solve(ARM, FEW, boxes=(lower, upper)),
        {"lower": np.zeros((2, 4)), "upper": np.ones((2, 4))},
    ),
    "solve, boxes alone": (
        lambda boxes: solve(ARM, FEW, boxes=boxes),
        {"boxes": (np.zeros(4), np.ones(4))},
    ),
    "solve_all_ik": (
        solve_all_ik,
        {"arm": ARM, "seed": np.zeros(4), "settings": FEW, "task": Task()},
    ),
    "loop_from_dh": (
        loop_from_dh,
        {"name": "m", **DH, "prismatic": (), "theta": [0.0, 0.0], "ranges": [(0, 1), (0, 1)]},
    ),
    "arm_from_dh": (
        arm_from_dh,
        {"name": "m", **DH, "q": [0.0, 0.0], "target": None, "prismatic": (1,), "theta": None,
         "ranges": None},
    ),
    "arm_from_urdf": (
        arm_from_urdf,
        {"urdf": URDF, "target": np.eye(4), "base": "base", "tip": "tip"},
    ),
    "loops_from_urdf": (loops_from_urdf, {"urdf": URDF, "closures": [CLOSURE]}),
    "load_mechanism": (load_mechanism, {"source": "variables: {}", "name": "file"}),
    "library.get": (library.get, {"name": "bennett"}),
    "Manifold.curve": (CURVE.curve, {"component": 0, "step": 0.1}),
    "Manifold.refine": (CURVE.refine, {"count": 3}),
    "Manifold.contains": (CURVE.contains, {"q": np.zeros(4), "slack": 1e-12}),
    "Manifold.distances": (CURVE.distances, {"seed": np.zeros(4)}),
    "Manifold.sorted_by": (CURVE.sorted_by, {"seed": np.zeros(4)}),
}  # fmt: skip

WRONG = {
    "none": None, "true": True, "word": "text", "empty": "", "number in a text": "0.1",
    "long text": "x" * 100_000, "bytes": b"\xff", "nan": math.nan, "inf": math.inf,
    "minus inf": -math.inf, "huge whole number": 10**400, "endless whole number": 10**5000,
    "minus huge": -(10**400), "minus one": -1, "zero": 0, "two": 2, "half": 0.5, "tiny": 1e-300,
    "1e300": 1e300, "complex": 1j, "list": [], "pair": [1, 2], "three": (1.0, 2.0, 3.0),
    "ragged": [[1.0], [2.0, 3.0]], "nested": [[[[1.0]]]], "texts": ["a", "b", "c", "d"],
    "nones": [None] * 4, "huge list": [10**400] * 4, "1e300s": [1e300] * 4,
    "nans": [[math.nan] * 4] * 4, "four": [0.0] * 4, "table": {}, "tables": {"a": {"b": 1}},
    "set": {1, 2}, "object": object(), "class": int, "function": len, "date": datetime.date.min,
    "empty array": np.empty((0, 4)), "array": np.ones((4, 4)), "deep array": np.ones((2, 2, 2)),
    "bool array": np.zeros(4, dtype=bool), "text array": np.array(["a"] * 4),
    "object array": np.array([object()] * 4), "wide array": np.zeros((4, 1000)),
    "sheared": np.eye(4) * 1.1, "numpy float": np.float32(0.5), "numpy whole": np.int16(1),
    "dates": np.array(["2026-11-18"] * 4, dtype="datetime64[D]"), "range": range(4),
    "generator": (x for x in ()), "manifold": CURVE, "settings": FEW, "mechanism": ARM,
}  # fmt: skip


def attempt(name, changes):
    """Call a function with wrong arguments; the error, if it refuses them."""
    function, arguments = CALLS[name]
    try:
        function(**{**arguments, **changes})
    except CuikError as error:
        assert str(error)
        assert len(str(error)) < 4000
        return error
    return None


@pytest.mark.parametrize("name", CALLS)
def test_the_arguments_themselves_are_taken(name):
    error = attempt(name, {})
    assert error is None or name in ("load_mechanism", "loops_from_urdf")


@pytest.mark.parametrize("name", CALLS)
def test_every_argument_replaced_by_every_wrong_value(name):
    refused = 0
    for field in CALLS[name][1]:
        for value in WRONG.values():
            refused += attempt(name, {field: value}) is not None
    assert refused > 20


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_values_for_several_arguments(data):
    # Hypothesis writes down what it draws, which Python refuses for 10**5000.
    drawn = sorted(set(WRONG) - {"endless whole number"})
    plain = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
        st.binary(max_size=8), st.complex_numbers(),
        st.sampled_from(drawn).map(lambda key: WRONG[key]),
    )  # fmt: skip
    values = st.recursive(
        plain,
        lambda inner: st.one_of(
            st.lists(inner, max_size=5),
            st.tuples(inner, inner),
            st.dictionaries(st.text(max_size=4), inner, max_size=3),
        ),
        max_leaves=10,
    )
    name = data.draw(st.sampled_from(sorted(CALLS)))
    fields = data.draw(st.sets(st.sampled_from(sorted(CALLS[name][1])), min_size=1, max_size=3))
    attempt(name, {field: data.draw(values) for field in sorted(fields)})


@pytest.mark.parametrize("field", [f for f in vars(Settings()) if f not in ("certify",)])
def test_settings_name_the_field(field):
    for value in (None, [], math.nan, 10**400, b"x", object()):
        with pytest.raises(SettingsError) as caught:
            replace(Settings(), **{field: value})
        assert caught.value.field == field


def test_numbers_of_numpy_are_settings():
    given_ones = Settings(sigma=np.float32(0.5), threads=np.int16(2), max_boxes=np.int64(7))
    assert (given_ones.sigma, given_ones.threads, given_ones.max_boxes) == (0.5, 2, 7)
    assert solve(library.get("bennett"), given_ones).stopped == "boxes"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: CURVE.curve(0, step=math.nan), "step: must be finite"),
        (lambda: CURVE.curve(0, step=0.0), "step: must be"),
        (lambda: CURVE.curve(0, step=1e-300), "step: must be"),
        (lambda: CURVE.curve(99), "component: must be at most"),
        (lambda: CURVE.curve(-1), "component: must be at least 0"),
        (lambda: CURVE.refine(10**9), "count: must be at most"),
        (lambda: solve_all_ik(ARM, [0.0]), "seed: must have the shape (4), got (1,)"),
        (lambda: solve_all_ik(ARM, [10**400] * 4), "seed: must be finite"),
        (lambda: CURVE.contains([0.0]), "q: must have the shape"),
        (lambda: ARM.with_ranges({"theta1": (0, 1, 2)}), "variables.theta1.range: must have the"),
        (lambda: ARM.with_ranges({"theta1": ("0", "1")}), "must hold numbers"),
        (lambda: ARM.with_ranges(None), "ranges: must map names"),
        (lambda: solve(ARM, boxes=([], [])), "boxes: there are none"),
        (lambda: solve(ARM, boxes=(np.empty((0, 4)), np.empty((0, 4)))), "boxes: there are none"),
        (lambda: solve(ARM, boxes=([0.0] * 3, [1.0] * 3)), "boxes.lower: must have the shape"),
        (lambda: solve(ARM, boxes=([1.0] * 4, [0.0] * 4)), "a lower end lies above"),
        (lambda: solve(ARM, boxes=([0, 0, 5, 0], [1, 1, 6, 1])), "none of them lies within"),
        (lambda: solve(ARM, boxes=([1e9] * 4, [1e9] * 4)), "reaches beyond"),
        (lambda: solve(ARM, None, resume=3), "resume: must be a Manifold, got 3"),
        (lambda: solve("puma"), "mechanism: must be a Mechanism, got 'puma'"),
    ],
)
def test_refusals_name_the_argument(call, sentence):
    with pytest.raises(CuikError) as caught:
        call()
    assert sentence in str(caught.value)


def test_given_boxes_are_cut_to_the_ranges():
    """So 1e300 asks for no more than the ranges, and proves no more."""
    everything = solve(ARM, Settings(sigma=0.1), boxes=([-1e300] * 4, [1e300] * 4))
    assert everything.complete
    assert everything.asked == "boxes"
    np.testing.assert_array_equal(everything.lower, solve(ARM, Settings(sigma=0.1)).lower)
    limited = ARM.with_ranges({"theta1": (0.0, 0.2), "d3": (0.0, 0.05)})
    nothing = solve(limited, boxes=([-3.0] * 4, [3.0] * 4))
    assert len(nothing.lower) == 0
    assert nothing.message == "proven: the mechanism has no configuration within the given boxes"
    turned = solve(ARM, boxes=([2 * math.pi, 0.8, 0.0, -1.0], [2 * math.pi + 1, 1.0, 0.3, 0.0]))
    assert turned.contains([0.4, 0.9, 0.12, -0.3], slack=1e-9)
    assert len(turned.lower) == 1


def test_boxes_are_not_ranges_when_they_are_resumed():
    limited = library.get("puma560")
    part = solve(limited, Settings(max_boxes=1), boxes=([2.0] * 6, [2.2] * 6))
    done = solve(limited, resume=part)
    assert done.asked == part.asked == "boxes"


YAML = """
name: four_bar
angles: degrees
variables:
  {a: {type: rotation}, b: {range: [-180, 180]}, c: {}, d: {type: translation, range: [0, 1]}}
loops:
  - name: one
    closure: pose
    chain:
      - rotate_z: a
      - translate_x: 1.0
      - rotate_z: b
      - transform: {xyz: [2.5, 0, 0], quaternion: [0, 0, 0, 1]}
      - translate_y: d
      - transform: {xyz: [2.5, 0, 0], rpy: [0, 0, 1]}
      - rotate_z: c
      - transform: [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
  - dh: [{theta: a, d: 0, a: 1, alpha: 90}, {theta: b, d: 0, a: 1, alpha: 0}]
    target: {xyz: [1, 0, 0]}
"""  # fmt: skip


def places(data, path=()):
    """Paths to every value of a document."""
    yield path
    if isinstance(data, (dict, list)):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places(value, (*path, key))


def changed(data, path, value):
    """A copy of a document with another value at a path."""
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = changed(data[path[0]], path[1:], value)
    return copy


def test_every_value_of_a_mechanism_file_replaced():
    data = yaml.safe_load(YAML)
    assert load_mechanism(YAML).name == "four_bar"
    wrong = [None, True, "", "x" * 3000, [], {}, [None], {1: 2}, math.nan, 1e300, 10**30, -1,
             b"\xff\x00", datetime.date.min, [1.0] * 4]  # fmt: skip
    refused = 0
    for path in places(data):
        for value in wrong:
            text = yaml.dump(changed(data, path, value), Dumper=yaml.CSafeDumper)
            try:
                load_mechanism(text)
            except CuikError as error:
                refused += 1
                assert len(str(error)) < 4000
    assert refused > 600


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("name: four_bar", f"name: {'9' * 400}"), "a whole number of 400 digits is too large"),
        (("xyz: [1, 0, 0]", f"xyz: [{'9' * 400}, 0, 0]"), "too large"),
        (("name: four_bar", "name: [a, b]"), "name: must be a text"),
        (("name: four_bar", "name: null"), "name: must be a text, got None"),
        (("name: one", "name: null"), "loops[0].name: must be a text"),
        (("name: four_bar", f"name: {'n' * 2000}"), "a word of 2000 characters; 1000 are taken"),
        (("name: four_bar", "name: !!binary aGVsbG8="), "of the type binary is not allowed"),
        (("range: [-180, 180]", "range: [-180, 1:30]"), "'1:30' is no number"),
        (("[0, 0, 0, 1]}", "[0, 0, 0, 0.995]}"), "must be a quaternion of norm 1, got norm 0.995"),
        (("{a: {type", "{1: {}, a: {type"), "variables: must be a text, got 1"),
        (("{a: {type", "{~: {}, a: {type"), "variables: must be a text, got None"),
        (("type: rotation", "type: [rotation]"), "must be rotation or translation"),
    ],
)  # fmt: skip
def test_what_is_not_meant_is_refused_in_one_sentence(change, sentence):
    assert change[0] in YAML
    with pytest.raises(MechanismError) as caught:
        load_mechanism(YAML.replace(*change), name="my.yaml")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_dimensions_are_shared_by_anchors():
    text = """
    variables: {a: , b: , c: , d: }
    loops:
      - chain:
          - {rotate_z: a}
          - &link {translate_x: &length 1.5}
          - {rotate_z: b}
          - *link
          - {rotate_z: c}
          - {translate_x: *length}
          - {rotate_z: d}
          - *link
    """
    mechanism = load_mechanism(text)
    lengths = [f.matrix[0, 3] for f in mechanism.loops[0].factors if isinstance(f, Constant)]
    assert lengths == [1.5] * 4


def test_many_variables_are_refused_before_anything_is_made_of_them():
    names = ", ".join(f"v{k}: {{}}" for k in range(60_000))
    with pytest.raises(SizeError, match="variables: 60000 is more than the limit of 64"):
        load_mechanism(f"variables: {{{names}}}\nloops: [{{chain: [{{rotate_z: w}}]}}]")
    with pytest.raises(SizeError, match="loops: 6000"):
        load_mechanism("variables: {a: }\nloops: [" + "1, " * 6000 + "]")
    with pytest.raises(SizeError, match="variables: 60000"):
        Mechanism("m", (Variable("a"),) * 60_000, (Loop(STEPS),))


def test_urdf_attributes_replaced():
    words = ("", "x", "nan", "1e400", "9" * 400, "0 0", "0 0 0", "x" * 5000, "tip", "base", "-1")
    taken = 0
    parts = URDF_TEXT.split('"')
    for k in range(1, len(parts), 2):
        for word in words:
            text = '"'.join([*parts[:k], word, *parts[k + 1 :]])
            try:
                arm_from_urdf(load_urdf(text), np.eye(4), tip="tip")
                taken += 1
            except (InvalidInput, LimitExceeded) as error:
                assert len(str(error)) < 4000
    assert taken > 20


def test_limits_of_no_length_are_a_fixed_joint():
    def arm(limits, angle):
        joint = f"""<joint name="j2" type="revolute"><parent link="l1"/><child link="l2"/>
            <origin xyz="1 0 0"/><axis xyz="0 0 1"/><limit {limits} velocity="1"/></joint>"""
        fixed = f"""<joint name="j2" type="fixed"><parent link="l1"/><child link="l2"/>
            <origin xyz="1 0 0" rpy="0 0 {angle}"/></joint>"""
        robots = []
        for middle in (joint, fixed):
            text = f"""<robot name="r"><link name="base"/><link name="l1"/><link name="l2"/>
                <link name="l3"/><link name="tip"/>
                <joint name="j1" type="continuous"><parent link="base"/><child link="l1"/>
                  <axis xyz="0 0 1"/></joint>{middle}
                <joint name="j3" type="continuous"><parent link="l2"/><child link="l3"/>
                  <origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
                <joint name="j4" type="fixed"><parent link="l3"/><child link="tip"/>
                  <origin xyz="1 0 0"/></joint></robot>"""
            robots.append(arm_from_urdf(load_urdf(text), np.eye(4)))
        return robots

    for limits, angle in (('lower="0" upper="0"', 0.0), ('lower="0.3" upper="0.3"', 0.3)):
        limited, fixed = arm(limits, angle)
        assert limited.names == fixed.names == ("j1", "j3")
        q = np.array([0.4, -0.7])
        np.testing.assert_allclose(limited.product(0, q), fixed.product(0, q), atol=1e-15)


def test_a_follower_of_a_fixed_joint_stands_still():
    text = """<robot name="r"><link name="base"/><link name="a"/><link name="b"/><link name="c"/>
      <link name="tip"/>
      <joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
        <limit lower="0.2" upper="0.2" velocity="1"/></joint>
      <joint name="j2" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
        <limit lower="-2" upper="2" velocity="1"/><mimic joint="j1" multiplier="2.5" offset="0.1"/>
      </joint>
      <joint name="j3" type="continuous"><parent link="b"/><child link="c"/><axis xyz="1 0 0"/>
      </joint>
      <joint name="j4" type="continuous"><parent link="c"/><child link="tip"/><axis xyz="0 1 0"/>
      </joint>
    </robot>"""
    arm = arm_from_urdf(load_urdf(text), np.eye(4))
    assert arm.names == ("j3", "j4")
    turn = arm.product(0, [0.0, 0.0])
    assert math.atan2(turn[1, 0], turn[0, 0]) == pytest.approx(0.2 + 2.5 * 0.2 + 0.1)


def test_errors_are_those_of_the_package():
    assert issubclass(RequestError, CuikError)
    assert issubclass(RequestError, InvalidInput)
