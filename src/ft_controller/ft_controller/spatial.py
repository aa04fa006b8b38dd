"""Dynamics of spatial serial arms in compiled kernels, row by row as those of the planar arm.

Equation (1) of :mod:`~ft_controller.dynamics` for bodies i = 0 .. n-1 that turn about, or slide
along, an axis u_i. All vectors are in the axes of the base. One pass outwards gives the axis u_i, a
point p_i on it, and force and moment of each body at qddot = 0, where gravity is an acceleration of
the base. One pass inwards joins the bodies j >= i to one (the composite bodies of Walker and Orin):

    mass m_j, first moment s_j and inertia J_j about p_j; force F_j and moment N_j about p_j
    momentum at unit rate of joint j:  l_j = u_j x s_j, h_j = J_j u_j  (turns)
                                       l_j = m_j u_j,   h_j = s_j x u_j  (slides)
    M_ij = u_i . (h_j + (p_j - p_i) x l_j)  for i <= j where i turns;  u_i . l_j  where it slides
    N_i + G_i = u_i . N_i (turns),  u_i . F_i (slides)

Friction is added apart. The control law takes that of the desired speeds: a light wrist with much
friction comes to its speed within a millisecond or two, and what a slower loop gives it for its
measured speed would drive it on.

So a row costs O(n) after the passes, and gives the same bits whoever computes it: a fixed order of
summation, no fast-math.
"""

from __future__ import annotations

import math

from numba import njit

from ft_controller.records import Array, Record, Records, record

__all__ = [
    "CREEP",
    "LINK",
    "MAX_JOINTS",
    "WORK",
    "add_friction",
    "element",
    "outer_sums",
    "potential",
]

MAX_JOINTS = 16
"""Joints of a spatial arm."""

CREEP = 1e-2
"""Below this speed Coulomb friction rises smoothly from 0 to its value [rad/s or m/s]."""

LINK = record(
    "slides",
    "r00 r01 r02 r10 r11 r12 r20 r21 r22 px py pz ux uy uz "
    "mass cx cy cz ixx ixy ixz iyy iyz izz friction coulomb gx gy gz",
)
"""One body and its joint.

Placement (rotation r, offset p) of the joint in the frame of the body before it, axis u in the
joint's frame; mass, centre of mass c and inertia about it in the body's own frame; friction. The
gravity of the arm is that of its first body, in the base frame.
"""

WORK = record(
    floats="slides ux uy uz px py pz cx cy cz ixx ixy ixz iyy iyz izz fx fy fz nx ny nz "
    "lx ly lz hx hy hz bias acceleration"
)
"""Intermediate results for one body, named as in the module's text.

c is the own centre of mass from p, i its inertia about it; f and n are force and moment about c.
"""

Three = tuple[float, float, float]


@njit(cache=True, nogil=True)
def _cross(a: Three, b: Three) -> Three:
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@njit(cache=True, nogil=True)
def _dot(a: Three, b: Three) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True, nogil=True)
def _sum(a: Three, b: Three) -> Three:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@njit(cache=True, nogil=True)
def _times(factor: float, a: Three) -> Three:
    return factor * a[0], factor * a[1], factor * a[2]


@njit(cache=True, nogil=True)
def _turned(x: Three, y: Three, z: Three, a: Three) -> Three:
    """A vector by its components along three axes."""
    return (
        x[0] * a[0] + y[0] * a[1] + z[0] * a[2],
        x[1] * a[0] + y[1] * a[1] + z[1] * a[2],
        x[2] * a[0] + y[2] * a[1] + z[2] * a[2],
    )


@njit(cache=True, nogil=True)
def _rotation(angle: float, u: Three) -> tuple[Three, Three, Three]:
    """Columns of a rotation about a unit axis (Rodrigues)."""
    c, s = math.cos(angle), math.sin(angle)
    k = 1.0 - c
    return (
        (c + k * u[0] * u[0], k * u[1] * u[0] + s * u[2], k * u[2] * u[0] - s * u[1]),
        (k * u[0] * u[1] - s * u[2], c + k * u[1] * u[1], k * u[2] * u[1] + s * u[0]),
        (k * u[0] * u[2] + s * u[1], k * u[1] * u[2] - s * u[0], c + k * u[2] * u[2]),
    )


@njit(cache=True, nogil=True)
def _acceleration(w: Three, dw: Three, r: Three) -> Three:
    """What a point at r has beside the acceleration of the origin: dw x r + w x (w x r)."""
    return _sum(_cross(dw, r), _cross(w, _cross(w, r)))


@njit(cache=True, nogil=True, inline="never")
def _outwards(links: Records, q: Array, qdot: Array, work: Records) -> None:
    """Axes, points, own inertias, and the forces of each body at qddot = 0."""
    # Axes of the body before, as columns.
    x, y, z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    p, w, dw = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    a = (-links[0].gx, -links[0].gy, -links[0].gz)
    for i in range(q.size):
        link, out = links[i], work[i]
        step = _turned(x, y, z, (link.px, link.py, link.pz))
        axis = (link.ux, link.uy, link.uz)
        # Axes of the body in those of the one before, at q: few roundings where joints are aligned.
        e = (link.r00, link.r10, link.r20)
        f = (link.r01, link.r11, link.r21)
        g = (link.r02, link.r12, link.r22)
        u = _turned(x, y, z, _turned(e, f, g, axis))
        if link.slides == 0:
            i0, i1, i2 = _rotation(q[i], axis)
            e, f, g = _turned(e, f, g, i0), _turned(e, f, g, i1), _turned(e, f, g, i2)
        x, y, z = _turned(x, y, z, e), _turned(x, y, z, f), _turned(x, y, z, g)
        rate = _times(qdot[i], u)
        if link.slides != 0:
            step = _sum(step, _times(q[i], u))
            a = _sum(a, _sum(_acceleration(w, dw, step), _times(2.0, _cross(w, rate))))
        else:
            a = _sum(a, _acceleration(w, dw, step))
            dw = _sum(dw, _cross(w, rate))
            w = _sum(w, rate)
        p = _sum(p, step)
        com = _turned(x, y, z, (link.cx, link.cy, link.cz))
        # R I R^T, by its columns I e_k in the axes of the body.
        first = _turned(x, y, z, (link.ixx, link.ixy, link.ixz))
        second = _turned(x, y, z, (link.ixy, link.iyy, link.iyz))
        third = _turned(x, y, z, (link.ixz, link.iyz, link.izz))
        out.ixx = first[0] * x[0] + second[0] * y[0] + third[0] * z[0]
        out.ixy = first[0] * x[1] + second[0] * y[1] + third[0] * z[1]
        out.ixz = first[0] * x[2] + second[0] * y[2] + third[0] * z[2]
        out.iyy = first[1] * x[1] + second[1] * y[1] + third[1] * z[1]
        out.iyz = first[1] * x[2] + second[1] * y[2] + third[1] * z[2]
        out.izz = first[2] * x[2] + second[2] * y[2] + third[2] * z[2]
        force = _times(link.mass, _sum(a, _acceleration(w, dw, com)))
        moment = _sum(_tensor(out, dw), _cross(w, _tensor(out, w)))
        out.slides = link.slides
        out.ux, out.uy, out.uz = u
        out.px, out.py, out.pz = p
        out.cx, out.cy, out.cz = com
        out.fx, out.fy, out.fz = force
        out.nx, out.ny, out.nz = moment


@njit(cache=True, nogil=True)
def _tensor(out: Record, a: Three) -> Three:
    """The own inertia of a body times a vector."""
    return (
        out.ixx * a[0] + out.ixy * a[1] + out.ixz * a[2],
        out.ixy * a[0] + out.iyy * a[1] + out.iyz * a[2],
        out.ixz * a[0] + out.iyz * a[1] + out.izz * a[2],
    )


@njit(cache=True, nogil=True)
def _point_inertia(mass: float, c: Three, a: Three) -> Three:
    """Inertia of a point mass at c times a vector: m (c x (a x c))."""
    return _times(mass, _cross(c, _cross(a, c)))


@njit(cache=True, nogil=True, inline="never")
def outer_sums(links: Records, q: Array, qdot: Array, work: Records) -> None:
    """Everything that the rows share: the composite bodies, and N + G.

    Args:
        links: The arm, shape (n,), of ``LINK``.
        q: Positions, shape (n,) [rad or m].
        qdot: Velocities, shape (n,) [rad/s or m/s].
        work: Overwritten, shape (n,), of ``WORK``.
    """
    _outwards(links, q, qdot, work)
    n = q.size
    mass = 0.0
    s, force, moment = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    # Inertia of the composite about p, as columns; it is symmetric.
    jx, jy, jz = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    ex, ey, ez = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    for i in range(n - 1, -1, -1):
        out, m = work[i], links[i].mass
        u, c = (out.ux, out.uy, out.uz), (out.cx, out.cy, out.cz)
        if i < n - 1:
            far = work[i + 1]
            r = (far.px - out.px, far.py - out.py, far.pz - out.pz)
            # J a -> J a + r x (a x s) + s x (a x r) + m r x (a x r)
            jx = _sum(jx, _carried(mass, r, s, ex))
            jy = _sum(jy, _carried(mass, r, s, ey))
            jz = _sum(jz, _carried(mass, r, s, ez))
            s = _sum(s, _times(mass, r))
            moment = _sum(moment, _cross(r, force))
        jx = _sum(jx, _sum(_tensor(out, ex), _point_inertia(m, c, ex)))
        jy = _sum(jy, _sum(_tensor(out, ey), _point_inertia(m, c, ey)))
        jz = _sum(jz, _sum(_tensor(out, ez), _point_inertia(m, c, ez)))
        s = _sum(s, _times(m, c))
        mass += m
        own = (out.fx, out.fy, out.fz)
        moment = _sum(moment, _sum((out.nx, out.ny, out.nz), _cross(c, own)))
        force = _sum(force, own)
        if out.slides != 0.0:
            out.lx, out.ly, out.lz = _times(mass, u)
            out.hx, out.hy, out.hz = _cross(s, u)
            bias = _dot(u, force)
        else:
            out.lx, out.ly, out.lz = _cross(u, s)
            out.hx, out.hy, out.hz = _turned(jx, jy, jz, u)
            bias = _dot(u, moment)
        out.bias = bias


@njit(cache=True, nogil=True, inline="never")
def add_friction(links: Records, speed: Array, work: Records) -> None:
    """Add the friction of joints that move at given speeds, shape (n,) [rad/s or m/s], to N + G."""
    for i in range(speed.size):
        v = speed[i]
        rubbing = links[i].coulomb * (v / math.sqrt(v * v + CREEP * CREEP))
        work[i].bias += links[i].friction * v + rubbing


@njit(cache=True, nogil=True)
def _carried(mass: float, r: Three, s: Three, a: Three) -> Three:
    """What is added to J a when a body is taken about a point that is r farther away from it."""
    both = _sum(_cross(r, _cross(a, s)), _cross(s, _cross(a, r)))
    return _sum(both, _point_inertia(mass, r, a))


@njit(cache=True, nogil=True)
def element(work: Records, i: int, j: int) -> float:
    """M_ij for i <= j."""
    near, far = work[i], work[j]
    u, l = (near.ux, near.uy, near.uz), (far.lx, far.ly, far.lz)
    if near.slides != 0.0:
        return _dot(u, l)
    r = (far.px - near.px, far.py - near.py, far.pz - near.pz)
    return _dot(u, _sum((far.hx, far.hy, far.hz), _cross(r, l)))


@njit(cache=True, nogil=True)
def potential(links: Records, work: Records) -> float:
    """Potential energy after :func:`outer_sums` [J]."""
    g = (links[0].gx, links[0].gy, links[0].gz)
    total = 0.0
    for i in range(work.size):
        out = work[i]
        com = _sum((out.px, out.py, out.pz), (out.cx, out.cy, out.cz))
        total -= links[i].mass * _dot(g, com)
    return total
