"""Drag the top of a tower of closed loops, without ROS.

./kinstack shell python examples/library/04_a_tower_of_270_joints.py
"""

from hier_ik import Solver, tower

solver = Solver(tower(15))  # 120 real and 150 virtual joints
solver.set_goal("drag", (0.8, 0.0, 11.6))  # the topmost plate [m]
solution = solver.solve()
print(solution.message)
print(f"largest residual {solution.residual:.1e} after {solution.iterations} iterations")
where = solver.poses()["P15"][:3, 3]
print("the plate is at", *(f"{value:.4f}" for value in where))
