"""The tower in MuJoCo and placo; run by bench_hier.py in an environment of its own.

Reads the compiled tower (bodies, closures, posture) as JSON, drags its top along the same circle,
one damped least-squares iteration per position, and prints one JSON line with the times.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np

ITERATIONS = 60


def quaternion(R):
    """(w, x, y, z) of a rotation matrix."""
    w = math.sqrt(max(0.0, 1 + R[0, 0] + R[1, 1] + R[2, 2])) / 2
    if w > 1e-3:
        v = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w)
        return np.array([w, *v])
    S = (R + R.T) / 2 + np.eye(3)  # half a turn: an axis is any large column
    a = S[:, np.argmax(np.diag(S))]
    return np.array([0.0, *(a / np.linalg.norm(a))])


def text(values):
    """Numbers as XML text."""
    return " ".join(repr(float(v)) for v in values)


def target(tower, n):
    """Where the goal is at position n of the drag."""
    goal = next(c for c in tower["closures"] if c["goal"])
    p = np.array(goal["A"])[:3, 3]
    angle = 2 * math.pi * n / 100
    return p + np.array([0.4 * math.sin(angle), 0.0, -0.4 + 0.2 * math.cos(angle)])


def mujoco_us(tower):
    """Raw MuJoCo Jacobians and a numpy damped least-squares step."""
    import mujoco

    root = Element("mujoco")
    SubElement(root, "compiler", angle="radian")
    world = SubElement(root, "worldbody")
    nodes = [world]
    for i, b in enumerate(tower["bodies"][1:], 1):
        T = np.array(b["T"])
        e = SubElement(
            nodes[b["parent"]], "body", name=f"b{i}", pos=text(T[:3, 3]), quat=text(quaternion(T))
        )
        SubElement(e, "inertial", pos="0 0 0", mass="1", diaginertia="1 1 1")
        SubElement(e, "joint", type="hinge" if b["kind"] == 1 else "slide", axis="0 0 1")
        nodes.append(e)
    for i, c in enumerate(tower["closures"]):
        for side, body, T in (("a", c["a"], np.array(c["A"])), ("b", c["b"], np.array(c["B"]))):
            SubElement(
                nodes[body], "site", name=f"{side}{i}", pos=text(T[:3, 3]), quat=text(quaternion(T))
            )
    model = mujoco.MjModel.from_xml_string(tostring(root, encoding="unicode"))
    data = mujoco.MjData(model)
    data.qpos[:] = tower["q"]
    nv = model.nv
    rows = []
    for i, c in enumerate(tower["closures"]):
        sites = [model.site(f"{s}{i}").id for s in "ab"]
        keep = [k for k in range(6) if c["mask"] >> k & 1]
        rows.append((*sites, keep, c["goal"]))
    jp, jr = np.zeros((2, 3, nv)), np.zeros((2, 3, nv))

    def iterate(n):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        Js, es = [], []
        for a, b, keep, goal in rows:
            mujoco.mj_jacSite(model, data, jp[0], jr[0], a)
            mujoco.mj_jacSite(model, data, jp[1], jr[1], b)
            Ra = data.site_xmat[a].reshape(3, 3)
            Rb = data.site_xmat[b].reshape(3, 3)
            if goal:
                Js.append(jp[1].copy())
                es.append(data.site_xpos[b] - target(tower, n))
                continue
            J = np.vstack([Ra.T @ (jp[1] - jp[0]), Ra.T @ (jr[1] - jr[0])])
            R = Ra.T @ Rb
            turn = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
            e = np.concatenate([Ra.T @ (data.site_xpos[b] - data.site_xpos[a]), turn])
            Js.append(J[keep])
            es.append(e[keep])
        J, e = np.vstack(Js), np.concatenate(es)
        A = J.T @ J
        A.flat[:: nv + 1] += 1e-8
        data.qpos[:] -= np.linalg.solve(A, J.T @ e)
        return float(np.abs(e).max())

    return timed(iterate), f"mujoco {mujoco.__version__}: Jacobians, numpy DLS"


def placo_us(tower):
    """Placo with all tasks soft; plane mechanism, so points and orientations suffice."""
    import placo

    robot = Element("robot", name="tower")

    def add_link(name):
        link = SubElement(robot, "link", name=name)
        inertial = SubElement(link, "inertial")
        SubElement(inertial, "mass", value="1")
        SubElement(inertial, "inertia", ixx="1", iyy="1", izz="1", ixy="0", ixz="0", iyz="0")

    def add_joint(name, kind, parent, child, T):
        e = SubElement(robot, "joint", name=name, type=kind)
        SubElement(e, "parent", link=parent)
        SubElement(e, "child", link=child)
        R = T[:3, :3]
        rpy = (
            math.atan2(R[2, 1], R[2, 2]),
            math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0])),
            math.atan2(R[1, 0], R[0, 0]),
        )
        if math.hypot(R[0, 0], R[1, 0]) < 1e-9:
            rpy = (math.atan2(-R[1, 2], R[1, 1]), rpy[1], 0.0)
        SubElement(e, "origin", xyz=text(T[:3, 3]), rpy=text(rpy))
        SubElement(e, "axis", xyz="0 0 1")
        SubElement(e, "limit", lower="-100", upper="100", effort="1", velocity="100")

    for i in range(len(tower["bodies"])):
        add_link(f"b{i}")
    for i, b in enumerate(tower["bodies"][1:], 1):
        kind = "revolute" if b["kind"] == 1 else "prismatic"
        add_joint(f"j{i}", kind, f"b{b['parent']}", f"b{i}", np.array(b["T"]))
    for i, c in enumerate(tower["closures"]):
        for side in "ab":
            add_link(f"{side}{i}")
            T = np.array(c[side.upper()])
            add_joint(f"f{side}{i}", "fixed", f"b{c[side]}", f"{side}{i}", T)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "robot.urdf").write_text(tostring(robot, encoding="unicode"))
        wrapper = placo.RobotWrapper(folder, placo.Flags.ignore_collisions)
    solver = placo.KinematicsSolver(wrapper)
    solver.mask_fbase(True)
    for i, q in enumerate(tower["q"], 1):
        wrapper.set_joint(f"j{i}", q)
    wrapper.update_kinematics()
    goal_task = None
    for i, c in enumerate(tower["closures"]):
        if c["goal"]:
            goal_task = solver.add_position_task(f"b{i}", target(tower, 0))
            goal_task.configure("goal", "soft", 1.0)
            continue
        if c["mask"] & 5 == 5 or c["mask"] & 3 == 3:
            t = solver.add_relative_position_task(f"a{i}", f"b{i}", np.zeros(3))
            t.configure(f"p{i}", "soft", 100.0)
        if c["mode"] == 1:
            t = solver.add_relative_orientation_task(f"a{i}", f"b{i}", np.eye(3))
            t.configure(f"r{i}", "soft", 100.0)
    solver.enable_joint_limits(False)
    solver.add_regularization_task(1e-6)

    def iterate(n):
        goal_task.target_world = target(tower, n)
        solver.solve(True)
        wrapper.update_kinematics()
        return float(np.linalg.norm(goal_task.error()))

    return timed(iterate), "placo, all tasks soft"


def timed(iterate):
    """Time per iteration [us], the best of five drags."""
    best, n = math.inf, 0
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(ITERATIONS // 5):
            n += 1
            error = iterate(n)
        best = min(best, (time.perf_counter() - start) / (ITERATIONS // 5) * 1e6)
    if not error < 1.0:
        raise RuntimeError(f"does not follow the drag, error {error:.3g}")
    return best


def main():
    """Measure what is installed."""
    tower = json.loads(Path(sys.argv[1]).read_text())
    answer = {}
    for name, measure in (("mujoco", mujoco_us), ("placo", placo_us)):
        try:
            answer[f"{name}_us"], answer[f"{name}_note"] = measure(tower)
        except Exception as error:
            answer[f"{name}_note"] = f"failed: {type(error).__name__}: {error}"[:200]
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
