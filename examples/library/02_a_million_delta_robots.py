"""Forward and inverse kinematics of a million delta robots, without ROS.

./kinstack shell python examples/library/02_a_million_delta_robots.py
"""

import time

import numpy as np

from gpu_kinematics import Delta, Geometry, explain

COUNT = 1_000_000

robots = Delta(Geometry(radius=0.0105, upper=0.040, lower=0.068), backend="cpu")  # [m]
angles = np.random.default_rng(1).uniform(-0.3, 0.9, (3, COUNT))  # [rad]
robots.fk(angles[:, :10])  # compiles, or loads from the cache
robots.ik(robots.fk(angles[:, :10])[0])

start = time.perf_counter()
position, status = robots.fk(angles)
again, status_again = robots.ik(position)
took = time.perf_counter() - start

good = (status == 0) & (status_again == 0)
print(f"{COUNT} robots forward and back in {1e3 * took:.0f} ms on one core")
print(f"{good.sum()} of them have both answers; the first is at {position[:, 0].round(4)} m")
print(f"largest difference after the round trip: {np.abs(again - angles)[:, good].max():.1e} rad")

far, why = robots.ik(np.array([[0.2], [0.0], [-0.05]]))
print(f"a point out of reach: {far[:, 0]}, because {explain(int(why[0]))}")
