"""Independent statements of the maths: mpmath from the definition, and random call builders."""

import mpmath as mp
import numpy as np

from gpu_kinematics.call import Call, Group, rows_of
from gpu_kinematics.geometry import Geometry
from gpu_kinematics.kernels import OPS, rows

MM = Geometry(10.5, 40.0, 68.0)


def elbow(R, La, theta, a):
    r = R + La * mp.cos(a)
    return mp.matrix([r * mp.cos(theta), r * mp.sin(theta), -La * mp.sin(a)])


def mp_fk(R, La, Lb, thetas, angles, guess):
    """Position by Newton on |p - c_i|^2 = Lb^2 in 40 digits, from a rough guess."""
    with mp.workdps(40):
        c = [
            elbow(mp.mpf(R), mp.mpf(La), t, mp.mpf(a)) for t, a in zip(thetas, angles, strict=True)
        ]

        def f(x, y, z):
            p = mp.matrix([x, y, z])
            return [mp.fdot(p - ci, p - ci) - mp.mpf(Lb) ** 2 for ci in c]

        return mp.findroot(f, [mp.mpf(float(g)) for g in guess], tol=1e-30)


def mp_ik(R, La, Lb, theta, p, guess):
    """Angle of one arm by Newton on the closure equation in 40 digits."""
    with mp.workdps(40):
        q = mp.matrix([mp.mpf(float(v)) for v in p])

        def f(a):
            d = q - elbow(mp.mpf(R), mp.mpf(La), theta, a)
            return mp.fdot(d, d) - mp.mpf(Lb) ** 2

        return mp.findroot(f, mp.mpf(float(guess)), tol=1e-30)


def exact_thetas():
    return [mp.mpf(0), 2 * mp.pi / 3, 4 * mp.pi / 3]


def random_inputs(op, dtype, n, rng, outer=1):
    """Groups with plausible numbers, a few unreachable ones among them, for any kernel."""
    s = 1.0 + 0.2 * rng.random(n)
    geometry = Geometry(
        0.0105 * s,
        0.04 * s,
        0.068 * s * (1 + 0.1 * rng.random(n)),
        rng.uniform(-0.1, 0.1, (3, n)) + np.array([[0.0], [2.1], [4.2]]),
    ).rows.astype(dtype)
    options = np.array([1, 1, 1, 1, -0.5, -0.5, -0.5, 1.0, 1.0, 1.0, 1e-6], dtype)
    ranges = {
        "angle": (-0.8, 1.4),
        "rate": (-3, 3),
        "rate2": (-9, 9),
        "position": (-0.07, 0.02),
        "velocity": (-1, 1),
        "acceleration": (-9, 9),
        "target": (-0.06, 0.0),
        "feedforward": (-1, 1),
        "start": (-0.03, 0.0),
        "goal": (-0.02, 0.02),
        "law": (1.0, 9.0),
        "move": (0.2, 3.0),
        "time": (0, 1),
    }
    own = []
    for name, kind in list(OPS[op].inputs.items())[2:]:
        if name == "path":
            plan_in = random_inputs("plan", dtype, n, rng)
            path = np.empty((rows(kind), n), dtype)
            duration = np.empty((1, n), dtype)
            from gpu_kinematics.cpu import CpuBackend

            CpuBackend().run(
                Call(
                    "plan",
                    np.dtype(dtype),
                    1,
                    n,
                    tuple(plan_in),
                    (Group(path, n, 1), Group(duration, n, 1)),
                    Group(None),
                )
            )
            array = path
        else:
            low, high = ranges[name]
            array = rng.uniform(low, high, (rows(kind), n)).astype(dtype)
            if name in ("position", "target"):
                array[2] = rng.uniform(-0.13, -0.01, n)
            if name == "move":
                array[0] = rng.integers(0, 3, n)
                array[2] = rng.uniform(0, 1, n)
                array[7] = rng.uniform(1, 2, n)
        own.append(Group(np.ascontiguousarray(array), n, 1))
    return [Group(np.ascontiguousarray(geometry), n, 1), Group(options, 1, 0), *own]


def run_both(op, dtype, n, rng, first, second):
    """The same call on two backends; their outputs and masks as lists of arrays."""
    inputs = tuple(random_inputs(op, dtype, n, rng))
    results = []
    for backend in (first, second):
        outs = [np.zeros((number, n), dtype) for number in rows_of(op)[1]]
        mask = np.zeros(n, np.uint16)
        backend.run(
            Call(
                op,
                np.dtype(dtype),
                1,
                n,
                inputs,
                tuple(Group(o, n, 1) for o in outs),
                Group(mask, 0, 1),
            )
        )
        results.append([*outs, mask])
    return results


def same_bits(a, b):
    """Equal bit for bit, any NaN counting as any other."""
    if a.dtype.kind != "f":
        return bool((a == b).all())
    integers = np.uint64 if a.dtype == np.float64 else np.uint32
    return bool(((a.view(integers) == b.view(integers)) | (np.isnan(a) & np.isnan(b))).all())


def poses(n, seed=0):
    return np.random.default_rng(seed).uniform(-0.6, 1.2, (3, n))


def joint_motion(t):
    """Angles, rates and accelerations of a smooth joint motion."""
    w = np.array([[1.3], [2.1], [0.7]])
    return 0.3 + 0.4 * np.sin(w * t), 0.4 * w * np.cos(w * t), -0.4 * w * w * np.sin(w * t)
