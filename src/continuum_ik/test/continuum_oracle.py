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


def energy_minimum(robot, result, pose, shapes):
    """Return the smallest curvature of the energy at fixed lengths, by chains of stiff links.

    Each rod is a chain of the ``shapes`` (6, n + 1, 3), inextensible, its ends clamped. The Hessian
    of bending energy and constraints, over all directions of links and the platform's six degrees
    of freedom, is projected on what the constraints leave free. Shares nothing with the solver but
    the equilibrium. No load.

    Returns:
        The smallest eigenvalue for links and platform in units of EI/L, and the largest gradient
        beside the largest bending force, which is small if the equilibrium is one.
    """
    n = shapes.shape[1] - 1
    R = pose[3:].reshape(3, 3)
    size = 12 * n + 6
    H, A = np.zeros((size, size)), np.zeros((18, size))
    d0, up = R[:, 2], np.array([0.0, 0.0, 1.0])
    platform = np.arange(12 * n, size)
    gradient = np.zeros(size)
    scale = 0.0

    def hat(v):
        return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0.0]])

    for i, rod in enumerate(robot.rods):
        EI, L, force = rod.bending_stiffness, result.lengths[i], result.forces[i]
        ds = L / n
        t = np.diff(shapes[i], axis=0)
        t /= np.linalg.norm(t, axis=1)[:, None]
        arm = R @ robot.platform[i]
        bases = []
        for k in range(n):
            a = np.linalg.svd(t[k][None])[2][1:].T  # two directions across the link
            bases.append(a)
            left, gl = (t[k - 1], 1.0) if k > 0 else (up, 2.0)
            right, gr = (t[k + 1], 1.0) if k < n - 1 else (d0, 2.0)
            g = EI / ds * (gl * (t[k] - left) + gr * (t[k] - right)) - ds * force
            at = 2 * (n * i + k)
            gradient[at : at + 2] = a.T @ g
            scale = max(scale, EI / ds * np.linalg.norm(gl * (t[k] - left)))
            H[at : at + 2, at : at + 2] += ((gl + gr) * EI / ds - g @ t[k]) * np.eye(2)
            if k > 0:
                cross = -EI / ds * bases[k - 1].T @ a
                H[at - 2 : at, at : at + 2] += cross
                H[at : at + 2, at - 2 : at] += cross.T
            A[3 * i : 3 * i + 3, at : at + 2] = -ds * a
        # The platform: its place is free, its turn w moves arms and the directions at the tips.
        w = platform[3:]
        A[3 * i : 3 * i + 3, platform[:3]] = np.eye(3)
        A[3 * i : 3 * i + 3, w] = -hat(arm)
        last = 2 * (n * i + n - 1)
        cross = -2.0 * EI / ds * bases[-1].T @ -hat(d0)
        H[last : last + 2, w] += cross
        H[np.ix_(w, range(last, last + 2))] += cross.T
        end = 2.0 * EI / ds * (d0 - t[-1])  # gradient by the direction at the tip
        H[np.ix_(w, w)] += 2.0 * EI / ds * hat(d0).T @ hat(d0)
        for v, f in ((d0, end), (arm, force)):
            # f . w x (w x v) = (f.w)(v.w) - (f.v)(w.w)
            H[np.ix_(w, w)] += 0.5 * (np.outer(f, v) + np.outer(v, f)) - (f @ v) * np.eye(3)
            gradient[w] += np.cross(v, f)
        gradient[platform[:3]] += force
    free = np.linalg.svd(A)[2][18:].T
    lowest = np.linalg.eigvalsh(free.T @ H @ free)[0]
    EI, L = robot.rods[0].bending_stiffness, result.lengths.mean()
    return lowest * L / EI, np.abs(gradient[: 12 * n]).max() / scale
