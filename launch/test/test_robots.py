"""The robots of the demos: what their URDFs say is what the nodes compute with."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

from hier_ik.demo import CircleDemo
from hier_ik.loop_closer import LoopCloser
from hier_ik.solver import Solver
from hier_ik.sources import linkage_from_file
from hier_ik.tower import tower
from hier_ik.urdf import load_urdf_linkage
from kin_core.urdf import load_closures, load_urdf
from kin_ros.frames import FrameBuffer
from kin_ros.robot_state import LinkTransforms
from kin_tools.launch_xml import load_launch_file

LAUNCH = Path(__file__).resolve().parents[1]
FOLDER = LAUNCH / "robots"
ROBOTS = yaml.safe_load((FOLDER / "robots.yaml").read_text())["robots"]
URDFS = {name: load_urdf(FOLDER / one["urdf"]) for name, one in ROBOTS.items() if "urdf" in one}


def placed(urdf, positions):
    """A buffer with every link at positions of joints."""
    links, buffer = LinkTransforms(urdf), FrameBuffer()
    links.take(JointState(name=list(positions), position=list(map(float, positions.values()))))
    for stamped in (*links.fixed, *links.messages(Time())):
        buffer.put(stamped, static=True)
    return buffer


def test_links_of_one_scene_have_names_of_their_own():
    names = [link for urdf in URDFS.values() for link in urdf.links]
    names += [name for name, one in ROBOTS.items() if "urdf" not in one]
    assert len(names) == len(set(names))
    assert not {"world", "map", "odom", "earth"} & set(names)


def frames_of(**arguments):
    """The frames that the launch file gives to nodes, and what it tells who shows the robots."""
    plan = load_launch_file(LAUNCH / "full_stack.launch.xml", arguments)
    frames, shown = {}, {}
    for spec in plan.processes:
        given = {}
        for values in spec.ros.parameters:
            given.update(values if isinstance(values, dict) else {})
        if spec.label == "robot_states":
            shown = given
        for name in ("frame", "frame_id", "marker_frame"):
            if name in given:
                frames[spec.label] = given[name]
    return frames, shown


def test_the_frames_of_all_nodes_have_their_place():
    """Each is a place or the root of a robot that is shown; a prefix comes before all of them."""
    roots = {name: URDFS[name].root if name in URDFS else name for name in ROBOTS}
    frames, shown = frames_of()
    assert len(frames) == 6
    assert set(frames.values()) <= {roots[name] for name in shown["robots"] if name != "world"}
    assert shown["frame_prefix"] == ""
    prefixed, shown = frames_of(namespace="r1", frame_prefix="r1/")
    assert prefixed == {node: f"r1/{frame}" for node, frame in frames.items()}
    assert shown["frame_prefix"] == "r1/"


@pytest.mark.parametrize(
    ("off", "robots"),
    [
        ("cuik", ["world", "planar", "delta_base", "base", "tower"]),
        ("demo_arm", ["world", "linkage", "planar", "delta_base", "base", "tower"]),
        ("hier", ["world", "linkage", "demo_arm", "planar", "delta_base", "base"]),
    ],
)
def test_the_robots_of_systems_that_are_off_are_not_shown(off, robots):
    _, shown = frames_of(**{off: "false"})
    assert list(shown["robots"]) == robots


@pytest.mark.parametrize("robot", ["six", "seven", "/somewhere/arm.urdf"])
def test_the_arm_that_is_driven_is_the_one_that_is_shown(robot):
    plan = load_launch_file(LAUNCH / "full_stack.launch.xml", {"robot": robot})
    for spec in plan.processes:
        given = {}
        for values in spec.ros.parameters:
            given.update(values if isinstance(values, dict) else {})
        if spec.label in ("ft_controller", "arm_simulator"):
            assert given["robot"] == robot
        if spec.label == "robot_states":
            assert robot in given["robots"] and "planar" not in given["robots"]


@pytest.mark.parametrize("name", URDFS)
def test_every_robot_can_be_seen(name):
    """A part to draw on all but the frames that only mark a place."""
    urdf = URDFS[name]
    bare = [link.get("name") for link in urdf.element.iter("link") if link.find("visual") is None]
    marks = {"tower_base", "arm_tool", "demo_arm_tool"}
    assert {link for link in bare if not link.endswith(".c1")} <= marks
    assert len(bare) < len(urdf.links)
    for joint in urdf.joints.values():
        assert joint.type != "revolute" or joint.lower < joint.upper


def test_the_planar_arm_is_the_one_that_is_controlled():
    parameters = yaml.safe_load((LAUNCH / "config" / "ft.yaml").read_text())["/**"]
    arm = parameters["ros__parameters"]
    urdf = URDFS["planar"]
    joints = [joint for joint in urdf.joints.values() if joint.moves]
    assert [joint.name for joint in joints] == arm["joints"]
    assert [joint.lower for joint in joints] == arm["lower"]
    assert [joint.upper for joint in joints] == arm["upper"]
    rng = np.random.default_rng(1)
    for q in rng.uniform(-2, 2, (10, 4)):
        found = placed(urdf, dict(zip(arm["joints"], q, strict=True))).lookup(
            "arm_base", "arm_tool"
        )
        angles = np.cumsum(q)
        x = sum(length * np.cos(a) for length, a in zip(arm["length"], angles, strict=True))
        y = sum(length * np.sin(a) for length, a in zip(arm["length"], angles, strict=True))
        np.testing.assert_allclose(found[:3, 3], [x, y, 0.0], atol=1e-12)
    for k, link in enumerate(urdf.element.findall("link")[1:5]):
        inertial = link.find("inertial")
        assert float(inertial.find("mass").get("value")) == arm["mass"][k]
        assert inertial.find("origin").get("xyz") == f"{arm['com'][k]:g} 0 0"
        assert float(inertial.find("inertia").get("izz")) == arm["inertia"][k]


def test_the_tower_stands_as_hier_ik_says_and_its_legs_close():
    """Plates, and the ends of all legs, at a posture that the solver found."""
    linkage = tower(15)
    solver = Solver(linkage)
    solver.set_goal("drag", np.array([0.6, 0.0, 11.5]))
    solution = solver.solve(tolerance=1e-10, max_iterations=300)
    assert solution.closure_residual < 1e-9
    values = {name: float(q[0]) for name, q in solution.values.items() if len(q) == 1}
    urdf = URDFS["tower"]
    missing = {j.name for j in urdf.joints.values() if j.moves} - set(values)
    assert not missing
    buffer = placed(urdf, values)
    solver.store()
    top = buffer.lookup("tower_base", "P15")[:3, 3]
    np.testing.assert_allclose(top, [0.6, 0.0, 11.5], atol=1e-7)
    closures = load_closures(FOLDER / "tower.closures.yaml")
    assert len(closures) == 30
    for closure in closures:
        a = buffer.lookup("tower_base", closure.link_a) @ closure.origin_a
        b = buffer.lookup("tower_base", closure.link_b) @ closure.origin_b
        np.testing.assert_allclose(a[:3, 3], b[:3, 3], atol=1e-7, err_msg=closure.name)


def test_the_tower_and_its_closures_are_a_linkage():
    """What hier_ik reads from the two files has the freedoms of the tower."""
    linkage = load_urdf_linkage(FOLDER / "tower.urdf", FOLDER / "tower.closures.yaml")
    assert len(linkage.closure_joints()) == 30
    assert Solver(linkage).solve(tolerance=1e-9).closure_residual < 1e-8


@pytest.mark.parametrize(("name", "freedoms", "motors"), [("biped", 28, 12), ("head", 21, 6)])
def test_the_motors_of_closed_loop_robots_determine_them_and_their_goals_are_followed(
    name, freedoms, motors
):
    """One turn of the demo: goals met, loops closed, limits kept, and tf has the links there."""
    linkage = linkage_from_file(FOLDER / f"{name}.urdf")
    closer = LoopCloser(linkage)
    assert (len(closer.names), len(closer.actuated)) == (freedoms, motors)
    assert closer.margin > 0.05
    solver, demo = Solver(linkage), CircleDemo(0.0)
    assert solver.solve(tolerance=1e-9).iterations <= 3
    before = solver.values()
    for k in range(120):
        demo.move(solver, k * 0.05, 0.5, 6.0)
        solution = solver.solve(tolerance=1e-7, max_iterations=50)
        assert solution.success, solution.message
        for joint, q in solution.values.items():
            assert (linkage.joints[joint].lower <= q).all(), joint
            assert (q <= linkage.joints[joint].upper).all(), joint
    moved = max(abs(solution.values[j] - q).max(initial=0.0) for j, q in before.items())
    assert moved > 0.01
    values = {joint: float(q[0]) for joint, q in solution.values.items() if len(q) == 1}
    buffer = placed(URDFS[name], values)
    for goal in solver.linkage.goals.values():
        found = buffer.lookup(f"{name}_base", goal.link)
        np.testing.assert_allclose(found, goal.target, atol=1e-6)
    # The loop closer comes to the same posture from the motors alone.
    state = closer.close([values[motor] for motor in closer.actuated])
    np.testing.assert_allclose(
        state.positions, [values[joint] for joint in closer.names], atol=1e-5
    )


@pytest.mark.parametrize("name", ["biped", "head"])
def test_another_linkage_is_one_argument(name, tmp_path):
    frames, shown = frames_of(linkage=name)
    assert frames["hier_ik"] == URDFS[name].root
    assert name in shown["robots"]
    assert "tower" not in shown["robots"]
    file = tmp_path / "mine.urdf"
    file.write_text((FOLDER / f"{name}.urdf").read_text())
    _, shown = frames_of(linkage=str(file))
    assert str(file) in shown["robots"]


@pytest.mark.parametrize("name", [name for name, one in ROBOTS.items() if "home" in one])
def test_home_is_a_posture_within_limits(name):
    home, joints = ROBOTS[name]["home"], URDFS[name].joints
    assert set(home) == {joint.name for joint in joints.values() if joint.moves}
    assert all(joints[joint].lower <= q <= joints[joint].upper for joint, q in home.items())
