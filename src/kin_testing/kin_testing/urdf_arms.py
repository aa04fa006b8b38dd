"""URDF arms that nobody chose: random joints, placements and inertias."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["random_urdf"]


def _text(values: ArrayLike) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))


def random_urdf(seed: int, n: int) -> str:
    """A serial arm of n joints between the links ``base`` and ``tip``, as URDF text.

    Joints turn, turn without end, or slide about any axis. Some links carry another that is fixed
    to them, and ``tip`` is fixed to the last one.
    """
    random = np.random.default_rng([seed, n])
    parts, parent = ['<link name="base"/>'], "base"
    for k in range(n):
        kind = random.choice(["revolute", "revolute", "continuous", "prismatic"])
        parts += [
            _link(f"link_{k}", random),
            f'<joint name="joint_{k}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="link_{k}"/>{_origin(random)}<axis xyz="{_text(random.normal(size=3))}"/>'
            '<limit lower="-3" upper="3" velocity="2" effort="50"/>'
            f'<dynamics damping="{random.uniform(0, 1)}" friction="{random.uniform(0, 1)}"/>'
            "</joint>",
        ]
        if random.random() < 0.3:
            parts += [
                _link(f"box_{k}", random),
                f'<joint name="screws_{k}" type="fixed"><parent link="link_{k}"/>'
                f'<child link="box_{k}"/>{_origin(random)}</joint>',
            ]
        parent = f"link_{k}"
    parts += [
        '<link name="tip"/>',
        f'<joint name="flange" type="fixed"><parent link="{parent}"/><child link="tip"/>'
        f"{_origin(random)}</joint>",
    ]
    return f'<robot name="random">{"".join(parts)}</robot>'


def _origin(random: np.random.Generator) -> str:
    xyz, rpy = random.uniform(-0.4, 0.4, 3), random.uniform(-3.0, 3.0, 3)
    return f'<origin xyz="{_text(xyz)}" rpy="{_text(rpy)}"/>'


def _link(name: str, random: np.random.Generator) -> str:
    """A link whose inertia is that of a few points, and so one that a body can have."""
    points = random.uniform(-0.2, 0.2, (5, 3))
    points -= points.mean(axis=0)
    mass = random.uniform(0.3, 4.0)
    tensor = mass / 5.0 * sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
    moments = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), *np.triu_indices(3), strict=True)
    values = " ".join(f'{key}="{float(tensor[i, j])!r}"' for key, i, j in moments)
    return (
        f'<link name="{name}"><inertial>{_origin(random)}<mass value="{mass}"/>'
        f"<inertia {values}/></inertial></link>"
    )
