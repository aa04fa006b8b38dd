"""All IK solutions of a URDF at a pose, without ROS.

./kinstack shell python examples/library/01_all_ik_of_a_urdf.py examples/library/arm.urdf
"""

import argparse
from pathlib import Path

import numpy as np

from kin_core.errors import KinError
from kin_core.rotations import rpy_to_matrix
from kin_core.urdf import load_urdf
from kin_solvers import arm_from_urdf, solve_all_ik

parser = argparse.ArgumentParser()
parser.add_argument("urdf", type=Path)
parser.add_argument("--xyz", type=float, nargs=3, default=(0.4, 0.1, 0.5), help="of the tip [m]")
parser.add_argument("--rpy", type=float, nargs=3, default=(0.0, 1.2, 0.0), help="of the tip [rad]")
parser.add_argument("--tip", default="", help="link; the only leaf if not given")
chosen = parser.parse_args()

target = np.eye(4)
target[:3, :3] = rpy_to_matrix(*chosen.rpy)
target[:3, 3] = chosen.xyz

try:
    arm = arm_from_urdf(load_urdf(chosen.urdf.read_text()), target, tip=chosen.tip)
except KinError as error:  # such as a robot with several tips
    raise SystemExit(f"{chosen.urdf}: {error}") from None
answer = solve_all_ik(arm)

print(answer.message)
print("complete" if answer.complete else "there may be more")
print("  ".join(f"{name:>8}" for name in arm.names))
for q in answer.positions:
    print("  ".join(f"{value:8.4f}" for value in q))
