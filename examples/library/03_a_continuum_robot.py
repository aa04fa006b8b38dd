"""Leg lengths of a continuum Stewart-Gough robot for a pose, and the pose back, without ROS.

./kinstack shell python examples/library/03_a_continuum_robot.py
"""

from continuum_ik import TIGHT, ContinuumRobot, ContinuumSolver, make_pose

solver = ContinuumSolver(ContinuumRobot(), tolerance=TIGHT)
result = solver.solve(make_pose((0.0, 0.02, 0.48)))
print("lengths [m]:", *(f"{length:.6f}" for length in result.lengths))

back = solver.forward(result.lengths)
print("platform [m]:", *(f"{value:.6f}" for value in back.pose[:3]))

report = solver.analyse()
print(f"margin to the fold {report.fold_margin:.3f}, stable: {report.stable}")

far = solver.solve(make_pose((0.6, 0.0, 0.3)))
print(f"out of reach: {far.reason}")
