"""Loop closing in pinocchio and placo; run by bench_hier.py, placo in an environment of its own.

Reads robots (bodies, closures, posture, which joints are actuated, a path of these) from the file
named on the command line. The first line of output says which peers are there. After that each line
of input, ``PEER ROBOT COUNT``, takes that peer's robot COUNT steps along the path, each until the
loops are closed to TOLERANCE, and is answered by a line with the time taken and what is left.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.linalg
from peers_hier import Tower, vee

#: What may be left of a loop [m or rad], and iterations of one step at most.
TOLERANCE, MOST = 1e-9, 50


class Robot(Tower):
    """A plain robot, and its path."""

    def __init__(self, plain):
        self.bodies, self.closures, self.q = plain["bodies"], plain["closures"], plain["q"]
        for part in self.bodies:
            part["T"] = np.array(part["T"])
        for c in self.closures:
            c["A"], c["B"] = np.array(c["A"]), np.array(c["B"])
        self.motors = plain["motors"]  # numbers of their bodies, from 1
        self.path = np.array(plain["path"])
        self.keep = np.flatnonzero(
            np.array([[c["mask"] >> k & 1 for k in range(6)] for c in self.closures]).ravel()
        )

    def rows(self, frames_a, frames_b):
        """What is left of the rows that the closures hold, and the rotations of their frames a."""
        A, B = np.array(frames_a), np.array(frames_b)
        Rt = A[:, :3, :3].transpose(0, 2, 1)
        dp = (Rt @ (B[:, :3, 3] - A[:, :3, 3])[:, :, None])[:, :, 0]
        e = np.concatenate([dp, vee(Rt @ B[:, :3, :3])], axis=1).ravel()
        return e[self.keep], Rt


class Pinocchio:
    """Newton's method over frame Jacobians, its step by Cholesky in numpy."""

    def __init__(self, robot):
        import pinocchio as pin

        self.pin, self.robot = pin, robot
        self.note = f"pinocchio {pin.__version__}: frame Jacobians, numpy Cholesky step"
        self.model = pin.buildModelFromXML(robot.urdf(frames=True))
        self.data = self.model.createData()
        names = range(len(robot.closures))
        self.a, self.b = ([self.model.getFrameId(f"{s}{i}_") for i in names] for s in "ab")
        place = [
            self.model.joints[self.model.getJointId(f"j{i}")].idx_q
            for i in range(1, len(robot.bodies))
        ]
        self.motors = [place[i - 1] for i in robot.motors]
        self.passive = [p for p in place if p not in self.motors]
        self.q = np.zeros(self.model.nq)
        self.q[place] = robot.q
        self.jac = np.zeros((len(self.a), 6, self.model.nv))

    def step(self, a):
        """Close the loops with the motors at a; what is left."""
        pin, m, d = self.pin, self.model, self.data
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        self.q[self.motors] = a
        for _ in range(MOST):
            pin.computeJointJacobians(m, d, self.q)
            pin.updateFramePlacements(m, d)
            f = d.oMf
            e, Rt = self.robot.rows(
                [f[i].homogeneous for i in self.a], [f[i].homogeneous for i in self.b]
            )
            if np.abs(e).max() <= TOLERANCE:
                break
            for i, (a_, b_) in enumerate(zip(self.a, self.b, strict=True)):
                self.jac[i] = pin.getFrameJacobian(m, d, b_, world)
                self.jac[i] -= pin.getFrameJacobian(m, d, a_, world)
            J = (Rt[:, None] @ self.jac.reshape(len(Rt), 2, 3, -1)).reshape(6 * len(Rt), -1)
            J = J[self.robot.keep][:, self.passive]
            A = J.T @ J
            A.flat[:: len(A) + 1] += 1e-14
            factor = scipy.linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
            self.q[self.passive] -= scipy.linalg.cho_solve(factor, J.T @ e, check_finite=False)
        return float(np.abs(e).max())


class Placo:
    """Placo's solver: motors as hard joint tasks, loops as soft relative tasks.

    The hinges of the robots' loops lie in planes that they cannot leave: their points are enough.
    """

    def __init__(self, robot):
        import placo

        self.robot = robot
        self.note = f"placo {importlib.metadata.version('placo')}: relative tasks, soft"
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "robot.urdf").write_text(robot.urdf(frames=True))
            self.wrapper = placo.RobotWrapper(folder, placo.Flags.ignore_collisions)
        self.solver = placo.KinematicsSolver(self.wrapper)
        self.solver.mask_fbase(True)
        for i, q in enumerate(robot.q, 1):
            self.wrapper.set_joint(f"j{i}", q)
        self.wrapper.update_kinematics()
        for i in range(len(robot.closures)):
            task = self.solver.add_relative_position_task(f"a{i}_", f"b{i}_", np.zeros(3))
            task.configure(f"p{i}", "soft", 1e3)
        self.joints = self.solver.add_joints_task()
        self.joints.configure("motors", "hard", 1.0)
        self.solver.enable_joint_limits(False)
        self.solver.add_regularization_task(1e-9)

    def step(self, a):
        """Close the loops with the motors at a; what is left."""
        self.joints.set_joints(
            {f"j{i}": float(q) for i, q in zip(self.robot.motors, a, strict=True)}
        )
        count = range(len(self.robot.closures))
        for _ in range(MOST):
            self.solver.solve(True)
            self.wrapper.update_kinematics()
            sides = ([self.wrapper.get_T_world_frame(f"{s}{i}_") for i in count] for s in "ab")
            left = float(np.abs(self.robot.rows(*sides)[0]).max())
            if left <= TOLERANCE:
                break
        return left


PEERS = {"pinocchio": Pinocchio, "placo": Placo}


def main():
    """Make what is installed, then answer timed rounds."""
    robots = json.loads(Path(sys.argv[1]).read_text())
    ready, notes = {}, {}
    for name, peer in PEERS.items():
        for robot, plain in robots.items():
            try:
                made = peer(Robot(json.loads(json.dumps(plain))))
                made.step(made.robot.path[0])
                ready[name, robot], notes[name] = made, made.note
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    print(json.dumps(notes), flush=True)
    position = dict.fromkeys(ready, 0)
    for line in sys.stdin:
        name, robot, count = line.split()
        peer, first = ready[name, robot], position[name, robot]
        position[name, robot] += int(count)
        path, left = peer.robot.path, 0.0
        start = time.perf_counter()
        for n in range(first, first + int(count)):
            left = max(left, peer.step(path[n % len(path)]))
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "left": left}), flush=True)


if __name__ == "__main__":
    main()
