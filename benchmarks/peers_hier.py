"""The tower in placo, MuJoCo, pinocchio and mink; run by bench_hier.py in its own environment.

Reads the compiled tower (bodies, closures, posture) from the file named on the command line. The
first line of output says which peers are there and, for each, what is measured. After that each
line of input, ``NAME COUNT``, drags the top of that peer's tower through COUNT positions of the
circle, one iteration per position, and is answered by a line with the time taken and the residuals
left: so the caller can measure its own solver in turn with the peers.

Every peer does the same: one damped or regularised least-squares step over all closures and the
goal. Rows that a plane mechanism cannot violate are left out where a peer has no task for them.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
import scipy.linalg
from scipy.spatial.transform import Rotation

DAMPING = 1e-8


def text(values):
    """Numbers as XML text."""
    return " ".join(repr(float(v)) for v in values)


def place(T):
    """A transform as MJCF has it."""
    w_last = Rotation.from_matrix(T[:3, :3]).as_quat()
    return {"pos": text(T[:3, 3]), "quat": text(np.roll(w_last, 1))}


class Tower:
    """The plain tower, and what all peers need of it."""

    def __init__(self, plain):
        self.bodies, self.closures, self.q = plain["bodies"], plain["closures"], plain["q"]
        for part in self.bodies:
            part["T"] = np.array(part["T"])
        for c in self.closures:
            c["A"], c["B"] = np.array(c["A"]), np.array(c["B"])
        self.goal = next(c for c in self.closures if c["goal"])
        self.start = self.goal["A"][:3, 3].copy()

    def target(self, n):
        """Where the goal is at position n of the drag."""
        angle = 2 * math.pi * n / 100
        offset = np.array([0.4 * math.sin(angle), 0.0, -0.4 + 0.2 * math.cos(angle)])
        return self.start + offset

    def holds(self, c):
        """Whether a closure holds the position, and the orientation, in the plane xz."""
        return c["mask"] & 7 not in (0, 1, 2, 4), c["mask"] & 56 == 56

    def urdf(self, frames):
        """The tree as URDF, with a fixed link per side of each closure if asked."""
        robot = Element("robot", name="tower")

        def link(name):
            inertial = SubElement(SubElement(robot, "link", name=name), "inertial")
            SubElement(inertial, "mass", value="1")
            SubElement(inertial, "inertia", ixx="1", iyy="1", izz="1", ixy="0", ixz="0", iyz="0")

        def joint(name, kind, parent, child, T):
            e = SubElement(robot, "joint", name=name, type=kind)
            SubElement(e, "parent", link=parent)
            SubElement(e, "child", link=child)
            rpy = Rotation.from_matrix(T[:3, :3]).as_euler("xyz")
            SubElement(e, "origin", xyz=text(T[:3, 3]), rpy=text(rpy))
            SubElement(e, "axis", xyz="0 0 1")
            SubElement(e, "limit", lower="-100", upper="100", effort="1", velocity="100")

        for i in range(len(self.bodies)):
            link(f"b{i}")
        for i, b in enumerate(self.bodies[1:], 1):
            kind = "revolute" if b["kind"] == 1 else "prismatic"
            joint(f"j{i}", kind, f"b{b['parent']}", f"b{i}", b["T"])
        for i, c in enumerate(self.closures if frames else ()):
            for side, end in (("a", "A"), ("b", "B")):
                link(f"{side}{i}_")
                joint(f"f{side}{i}", "fixed", f"b{c[side]}", f"{side}{i}_", c[end])
        return tostring(robot, encoding="unicode")

    def mjcf(self):
        """The tree as MJCF, with a site per side of each closure."""
        root = Element("mujoco")
        SubElement(root, "compiler", angle="radian")
        nodes = [SubElement(root, "worldbody")]
        for i, b in enumerate(self.bodies[1:], 1):
            e = SubElement(nodes[b["parent"]], "body", name=f"b{i}", **place(b["T"]))
            SubElement(e, "inertial", pos="0 0 0", mass="1", diaginertia="1 1 1")
            SubElement(e, "joint", type="hinge" if b["kind"] == 1 else "slide", axis="0 0 1")
            nodes.append(e)
        for i, c in enumerate(self.closures):
            for side, end in (("a", "A"), ("b", "B")):
                SubElement(nodes[c[side]], "site", name=f"{side}{i}", **place(c[end]))
        return tostring(root, encoding="unicode")


def residuals(tower, pose_a, pose_b, n):
    """Largest closure residual and goal residual, from (R, p) of both sides of each closure."""
    closed = 0.0
    goal = math.inf
    for c, (Ra, pa), (Rb, pb) in zip(tower.closures, pose_a, pose_b, strict=True):
        if c["goal"]:
            goal = float(np.linalg.norm(pb - tower.target(n)))
            continue
        position, orientation = tower.holds(c)
        if position:
            closed = max(closed, float(np.abs(pb - pa).max()))
        if orientation:
            closed = max(closed, float(np.abs(Ra.T @ Rb - np.eye(3)).max()))
    return closed, goal


def vee(R):
    """Rotation rows of stacked matrices (k, 3, 3): half the skew part."""
    turned = (R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1])
    return 0.5 * np.stack(turned, axis=1)


def damped_step(J, e):
    """-(J'J + mu)^-1 J'e by Cholesky."""
    A = J.T @ J
    A.flat[:: len(A) + 1] += DAMPING
    factor = scipy.linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    return -scipy.linalg.cho_solve(factor, J.T @ e, check_finite=False)


class LeastSquares:
    """A damped least-squares step in numpy over the Jacobians that a library gives.

    A library says where the frames of both sides of all closures are, (n, 3, 3) and (n, 3) each,
    and how they move with the joints, in world axes: (n, 6, joints), b less a.
    """

    def __init__(self, tower, frame):
        """Number the frames; ``frame`` is the library's number of a name."""
        self.tower = tower
        closures = range(len(tower.closures))
        self.a, self.b = ([frame(f"{side}{i}") for i in closures] for side in "ab")
        keep = [[c["mask"] >> k & 1 for k in range(6)] for c in tower.closures]
        self.keep = np.flatnonzero(np.array(keep).ravel())
        self.goal = tower.closures.index(tower.goal)

    def step(self, D, n):
        """The change of the joints at position n."""
        (Ra, pa), (Rb, pb) = self.frames()
        Rt = Ra.transpose(0, 2, 1)
        dp = pb - pa
        dp[self.goal] = pb[self.goal] - self.tower.target(n)
        J = (Rt[:, None] @ D.reshape(len(dp), 2, 3, -1)).reshape(6 * len(dp), -1)
        e = np.concatenate([(Rt @ dp[:, :, None])[:, :, 0], vee(Rt @ Rb)], axis=1).ravel()
        return damped_step(J[self.keep], e[self.keep])

    def left(self, n):
        """Residuals of the frames where they are."""
        return residuals(self.tower, *(list(zip(*side, strict=True)) for side in self.frames()), n)


class Mujoco(LeastSquares):
    """Site Jacobians of MuJoCo."""

    def __init__(self, tower):
        import mujoco

        self.mj = mujoco
        self.note = f"mujoco {mujoco.__version__}: site Jacobians, numpy Cholesky step"
        self.model = m = mujoco.MjModel.from_xml_string(tower.mjcf())
        super().__init__(tower, lambda name: m.site(name).id)
        self.data = mujoco.MjData(m)
        self.data.qpos[:] = tower.q
        self.jac = np.zeros((len(self.a), 2, 6, m.nv))

    def frames(self):
        """Rotations and positions of both sides."""
        R, p = self.data.site_xmat.reshape(-1, 3, 3), self.data.site_xpos
        return (R[self.a], p[self.a]), (R[self.b], p[self.b])

    def iterate(self, n):
        """One iteration at position n."""
        mj, m, d = self.mj, self.model, self.data
        mj.mj_kinematics(m, d)
        mj.mj_comPos(m, d)
        for i, (a, b) in enumerate(zip(self.a, self.b, strict=True)):
            ja, jb = self.jac[i]
            mj.mj_jacSite(m, d, ja[:3], ja[3:], a)
            mj.mj_jacSite(m, d, jb[:3], jb[3:], b)
        d.qpos[:] += self.step(self.jac[:, 1] - self.jac[:, 0], n)

    def error(self, n):
        """Residuals at the present posture."""
        self.mj.mj_kinematics(self.model, self.data)
        return self.left(n)


class Pinocchio(LeastSquares):
    """Frame Jacobians of pinocchio."""

    def __init__(self, tower):
        import pinocchio as pin

        self.pin = pin
        self.note = f"pinocchio {pin.__version__}: frame Jacobians, numpy Cholesky step"
        self.model = pin.buildModelFromXML(tower.urdf(frames=True))
        super().__init__(tower, lambda name: self.model.getFrameId(f"{name}_"))
        self.data = self.model.createData()
        self.q = np.zeros(self.model.nq)
        for i, value in enumerate(tower.q, 1):
            self.q[self.model.joints[self.model.getJointId(f"j{i}")].idx_q] = value
        self.jac = np.zeros((len(self.a), 6, self.model.nv))

    def frames(self):
        """Rotations and positions of both sides."""
        f = self.data.oMf
        both = (np.array([f[i].homogeneous for i in side]) for side in (self.a, self.b))
        return tuple((T[:, :3, :3], T[:, :3, 3]) for T in both)

    def iterate(self, n):
        """One iteration at position n."""
        pin, m, d = self.pin, self.model, self.data
        pin.computeJointJacobians(m, d, self.q)
        pin.updateFramePlacements(m, d)
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        for i, (a, b) in enumerate(zip(self.a, self.b, strict=True)):
            self.jac[i] = pin.getFrameJacobian(m, d, b, world)
            self.jac[i] -= pin.getFrameJacobian(m, d, a, world)
        self.q = self.q + self.step(self.jac, n)

    def error(self, n):
        """Residuals at the present posture."""
        self.pin.framesForwardKinematics(self.model, self.data, self.q)
        return self.left(n)


class Placo:
    """Placo with all tasks soft; hard closures fail there on rows that depend on each other."""

    def __init__(self, tower):
        import placo

        self.tower = tower
        self.note = f"placo {importlib.metadata.version('placo')}: relative tasks, all soft"
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "robot.urdf").write_text(tower.urdf(frames=True))
            self.robot = placo.RobotWrapper(folder, placo.Flags.ignore_collisions)
        self.solver = placo.KinematicsSolver(self.robot)
        self.solver.mask_fbase(True)
        for i, q in enumerate(tower.q, 1):
            self.robot.set_joint(f"j{i}", q)
        self.robot.update_kinematics()
        for i, c in enumerate(tower.closures):
            if c["goal"]:
                self.goal = self.solver.add_position_task(f"b{i}_", tower.target(0))
                self.goal.configure("goal", "soft", 1.0)
                continue
            position, orientation = tower.holds(c)
            if position:
                task = self.solver.add_relative_position_task(f"a{i}_", f"b{i}_", np.zeros(3))
                task.configure(f"p{i}", "soft", 100.0)
            if orientation:
                task = self.solver.add_relative_orientation_task(f"a{i}_", f"b{i}_", np.eye(3))
                task.configure(f"r{i}", "soft", 100.0)
        self.solver.enable_joint_limits(False)
        self.solver.add_regularization_task(1e-6)

    def iterate(self, n):
        """One iteration at position n."""
        self.goal.target_world = self.tower.target(n)
        self.solver.solve(True)
        self.robot.update_kinematics()

    def error(self, n):
        """Residuals at the present posture."""
        sides = (
            [self.robot.get_T_world_frame(f"{s}{i}_") for i in range(len(self.tower.closures))]
            for s in "ab"
        )
        poses = ([(T[:3, :3], T[:3, 3]) for T in side] for side in sides)
        return residuals(self.tower, *poses, n)


class Mink:
    """Mink with a relative frame task per closure and its default solver."""

    def __init__(self, tower):
        import mink
        import mujoco

        self.mink, self.tower = mink, tower
        self.note = f"mink {importlib.metadata.version('mink')}: relative frame tasks, daqp"
        self.model = mujoco.MjModel.from_xml_string(tower.mjcf())
        self.state = mink.Configuration(self.model, np.array(tower.q))
        self.tasks = []
        for i, c in enumerate(tower.closures):
            if c["goal"]:
                self.goal = mink.FrameTask(
                    f"b{i}", "site", position_cost=1.0, orientation_cost=0.0, lm_damping=0.0
                )
                self.tasks.append(self.goal)
                continue
            position, orientation = tower.holds(c)
            task = mink.RelativeFrameTask(
                f"b{i}", "site", f"a{i}", "site",
                position_cost=10.0 * position, orientation_cost=10.0 * orientation,
            )  # fmt: skip
            task.set_target(mink.SE3.identity())
            self.tasks.append(task)

    def iterate(self, n):
        """One iteration at position n."""
        mink = self.mink
        self.goal.set_target(mink.SE3.from_translation(self.tower.target(n)))
        v = mink.solve_ik(self.state, self.tasks, 1.0, "daqp", damping=1e-8, limits=[])
        self.state.integrate_inplace(v, 1.0)

    def error(self, n):
        """Residuals at the present posture."""
        R, p = self.state.data.site_xmat.reshape(-1, 3, 3), self.state.data.site_xpos
        sites = [
            [self.model.site(f"{s}{i}").id for i in range(len(self.tower.closures))] for s in "ab"
        ]
        return residuals(self.tower, *([(R[k], p[k]) for k in side] for side in sites), n)


PEERS = {"placo": Placo, "mujoco": Mujoco, "pinocchio": Pinocchio, "mink": Mink}


def main():
    """Make what is installed, then answer timed rounds."""
    plain = Path(sys.argv[1]).read_text()
    ready, notes = {}, {}
    for name, peer in PEERS.items():
        try:
            ready[name] = peer(Tower(json.loads(plain)))
            ready[name].iterate(0)
            notes[name] = ready[name].note
        except Exception as error:
            ready.pop(name, None)
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    print(json.dumps(notes), flush=True)
    position = dict.fromkeys(ready, 0)
    for line in sys.stdin:
        name, count = line.split()
        peer, first = ready[name], position[name] + 1
        position[name] += int(count)
        start = time.perf_counter()
        for n in range(first, position[name] + 1):
            peer.iterate(n)
        seconds = time.perf_counter() - start
        closed, goal = peer.error(position[name])
        print(json.dumps({"seconds": seconds, "closed": closed, "goal": goal}), flush=True)


if __name__ == "__main__":
    main()
