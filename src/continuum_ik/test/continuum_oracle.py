"""The plain statement of the equations, by other means: 18 states, scipy's DOP853."""

import numpy as np
from scipy.integrate import solve_ivp


def rod_slope(y, rod):
    """Slope of (p, R row by row, n, m): Cosserat rod with shear, extension, bending and torsion."""
    R, n, m = y[3:12].reshape(3, 3), y[12:15], y[15:18]
    GA, EA, EI = rod.shear_stiffness, rod.axial_stiffness, rod.bending_stiffness
    GJ = 2.0 * EI * rod.shear_modulus / rod.youngs_modulus
    v = R.T @ n / np.array([GA, GA, EA]) + [0.0, 0.0, 1.0]
    u = R.T @ m / np.array([EI, EI, GJ])
    hat = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    p_s = R @ v
    return np.concatenate([p_s, (R @ hat).ravel(), np.zeros(3), -np.cross(p_s, n)])


def shoot18(rod, n, m0, L, rtol=1e-12):
    """Integrate one rod; returns p (relative to the hole), R, m at the tip."""
    start = np.concatenate([np.zeros(3), np.eye(3).ravel(), n, m0, [0.0]])
    end = solve_ivp(
        lambda s, y: rod_slope(y, rod), (0.0, L), start, method="DOP853", rtol=rtol, atol=1e-14
    ).y[:, -1]
    return end[:3], end[3:12].reshape(3, 3), end[15:18]


def residual36(robot, pose, forces, moments, lengths, rtol=1e-12, tutorial=False):
    """The robot's residual with the 18-state rods.

    With ``tutorial`` the rotation part is the tutorial's linear_rotation_error.
    """
    pE, RE = pose[:3], pose[3:].reshape(3, 3)
    out = []
    F, M = np.array(robot.load.force), np.array(robot.load.moment)
    force = F.copy()
    moment = M + np.cross(RE @ np.array(robot.load.point), F)
    for i in range(6):
        p, R, m = shoot18(robot.rods[i], forces[i], moments[i], lengths[i], rtol)
        arm = RE @ robot.platform[i]
        out.extend(p + robot.base[i] - (pE + arm))
        if tutorial:
            X = R.T @ RE - R @ RE.T
            out.extend([X[2, 1], X[0, 2]])
        else:
            out.extend(2.0 * (RE.T @ R[:, 2])[:2])
        force = force - forces[i]
        moment = moment - (m + np.cross(arm, forces[i]))
    return np.concatenate([out, force, moment])


def refine(robot, result, pose, rounds=6):
    """Solve to the bottom with the 18-state rods: chord steps, rod by rod differences for J."""
    y = np.concatenate([np.hstack([result.forces, result.moments]).ravel(), result.lengths])
    RE = pose[3:].reshape(3, 3)

    def f(y):
        x = y[:30].reshape(6, 5)
        return residual36(robot, pose, x[:, :3], x[:, 3:], y[30:])

    J = np.zeros((36, 36))
    for i in range(6):
        arm = RE @ robot.platform[i]
        x = np.append(y[5 * i : 5 * i + 5], y[30 + i])
        p0, R0, m0 = shoot18(robot.rods[i], x[:3], x[3:5], x[5], 1e-11)
        for j in range(6):
            h = 1e-6
            moved = x.copy()
            moved[j] += h
            p, R, m = shoot18(robot.rods[i], moved[:3], moved[3:5], moved[5], 1e-11)
            column = 5 * i + j if j < 5 else 30 + i
            J[5 * i : 5 * i + 3, column] = (p - p0) / h
            J[5 * i + 3 : 5 * i + 5, column] = 2.0 * (RE.T @ (R - R0)[:, 2])[:2] / h
            dn = (moved[:3] - x[:3]) / h
            J[30:33, column] = -dn
            J[33:, column] = -((m - m0) / h + np.cross(arm, dn))
    inverse = np.linalg.inv(J)
    r = f(y)
    for _ in range(rounds):
        y = y - inverse @ r
        r = f(y)
        if r @ r < 1e-23:
            break
    return y[30:], float(r @ r)
