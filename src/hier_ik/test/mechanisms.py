"""Closed spatial mechanisms for the tests, each with what an independent oracle needs."""

from __future__ import annotations

import math

import numpy as np

from hier_ik import Linkage, frame


def rot_z(a):
    c, s = math.cos(a), math.sin(a)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])


def stewart(height=1.0):
    """Six U-P-S legs; base and platform anchors."""
    base = [rot_z(math.radians(a)) @ [1.0, 0, 0] for a in (-10, 10, 110, 130, 230, 250)]
    plate = [rot_z(math.radians(a)) @ [0.6, 0, 0] for a in (-50, 50, 70, 170, 190, 290)]
    l = Linkage("stewart")
    l.add_link("base")
    l.add_link("platform")
    for i, (b, p) in enumerate(zip(base, plate, strict=True)):
        l.add_link(f"low{i}")
        l.add_link(f"high{i}")
        # the universal joint stands upright: x and y of the base, the slide along z
        d = np.array([p[0] - b[0], p[1] - b[1], height])
        length = float(np.linalg.norm(d))
        beta = math.asin(d[0] / length)
        alpha = math.atan2(-d[1], d[2])
        l.add_joint(
            f"U{i}", "universal", "base", f"low{i}", xyz=b, closure=False, value=(alpha, beta)
        )
        l.add_joint(
            f"P{i}",
            "prismatic",
            f"low{i}",
            f"high{i}",
            closure=False,
            value=length,
            lower=0.3,
            upper=2.5,
        )
        if i == 0:
            # the first leg carries the platform
            l.add_joint(
                "S0", "spherical", "high0", "platform", child_origin=frame(p), closure=False
            )
        else:
            l.add_joint(
                f"S{i}", "spherical", f"high{i}", "platform", child_origin=frame(p), closure=True
            )
    # the ball of leg 0 takes back the tilt of its leg, so that the platform is level
    low = l.link_poses(("high0",))["high0"]
    from kin_core.rotations import log_so3

    l.values["S0"] = log_so3(np.ascontiguousarray(low[:3, :3].T))
    return l, np.array(base), np.array(plate)


def bennett(a=1.0, alpha=math.pi / 3, beta=0.6):
    """Bennett's linkage: a/sin(alpha) = b/sin(beta); mobile although Gruebler counts -2."""
    b = a * math.sin(beta) / math.sin(alpha)
    l = Linkage("bennett")
    for n in ("g", "x", "y", "z"):
        l.add_link(n)

    # Denavit-Hartenberg: turn about z, go along x, twist about x
    def dh(length, twist):
        return frame((length, 0, 0), (twist, 0, 0))

    l.add_joint("1", "revolute", "g", "x", closure=False)
    l.add_joint("2", "revolute", "x", "y", origin=dh(a, alpha), closure=False)
    l.add_joint("3", "revolute", "y", "z", origin=dh(b, beta), closure=False)
    l.add_joint(
        "4",
        "revolute",
        "z",
        "g",
        origin=dh(a, alpha),
        child_origin=np.linalg.inv(dh(b, beta)),
        closure=True,
    )
    return l, alpha, beta


def rrr3(base=1.0, plate=0.3, upper=0.6, lower=0.6):
    """Planar 3-RRR: three legs of two bars on a triangular platform, in the plane xy."""
    l = Linkage("3rrr")
    l.add_link("base")
    l.add_link("platform")
    anchors, tips = [], []
    for i in range(3):
        a = math.radians(90 + 120 * i)
        b = np.array([base * math.cos(a), base * math.sin(a), 0])
        p = np.array([plate * math.cos(a), plate * math.sin(a), 0])
        anchors.append(b)
        tips.append(p)
        l.add_link(f"u{i}")
        l.add_link(f"v{i}")
        d = p - b
        r = float(np.linalg.norm(d))
        swing = math.acos((upper**2 + r**2 - lower**2) / (2 * upper * r))
        first = math.atan2(d[1], d[0]) + swing
        knee = b + upper * np.array([math.cos(first), math.sin(first), 0])
        second = math.atan2(*(p - knee)[[1, 0]]) - first
        l.add_joint(f"A{i}", "revolute", "base", f"u{i}", xyz=b, closure=False, value=first)
        l.add_joint(
            f"B{i}", "revolute", f"u{i}", f"v{i}", xyz=(upper, 0, 0), closure=False, value=second
        )
        if i == 0:
            l.add_joint(
                "C0",
                "revolute",
                "v0",
                "platform",
                xyz=(lower, 0, 0),
                child_origin=frame(p),
                closure=False,
                value=-first - second,
            )
        else:
            l.add_joint(
                f"C{i}",
                "revolute",
                f"v{i}",
                "platform",
                xyz=(lower, 0, 0),
                child_origin=frame(p),
                closure=True,
            )
    return l, np.array(anchors), np.array(tips)


def delta(R=0.4, r=0.1, arm=0.4, rod=0.9, width=0.1):
    """Delta robot with real parallelograms: two rods with balls per arm."""
    l = Linkage("delta")
    l.add_link("base")
    l.add_link("platform")
    height = -math.sqrt(rod**2 - (R + arm - r) ** 2)
    for i in range(3):
        a = 2 * math.pi * i / 3
        l.add_link(f"arm{i}")
        # the arm turns about the tangent; at zero it points outwards
        l.add_joint(
            f"M{i}",
            "revolute",
            "base",
            f"arm{i}",
            origin=frame(rotation=rot_z(a)) @ frame((R, 0, 0)),
            axis=(0, 1, 0),
            closure=False,
            lower=-1.2,
            upper=1.4,
        )
        for k, side in enumerate((-1, 1)):
            l.add_link(f"rod{i}{k}")
            d = np.array([r - R - arm, 0, height])
            turn = frame(rotation=_along(d))
            l.add_joint(
                f"S{i}{k}",
                "spherical",
                f"arm{i}",
                f"rod{i}{k}",
                origin=frame((arm, side * width, 0)) @ turn,
                closure=False,
            )
            plate = rot_z(a) @ np.array([r, side * width, 0])
            if (i, k) == (0, 0):
                l.add_joint(
                    "T00",
                    "spherical",
                    "rod00",
                    "platform",
                    origin=frame((0, 0, rod)),
                    child_origin=frame(plate, rotation=rot_z(a) @ turn[:3, :3]),
                    closure=False,
                )
            else:
                l.add_joint(
                    f"T{i}{k}",
                    "spherical",
                    f"rod{i}{k}",
                    "platform",
                    origin=frame((0, 0, rod)),
                    child_origin=frame(plate),
                    closure=True,
                )
    return l, height


def _along(d):
    """A rotation whose z axis is along d."""
    z = d / np.linalg.norm(d)
    x = np.cross([0, 1.0, 0], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
