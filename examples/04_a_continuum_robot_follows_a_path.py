"""Leg lengths of a continuum Stewart-Gough robot along a path, and where it breaks off.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/04_a_continuum_robot_follows_a_path.py

It needs nothing of kinstack but its messages and visitor.py beside it.
"""

import math

from geometry_msgs.msg import Pose
from kin_interfaces.srv import SolveContinuumFK, SolveContinuumIK
from visitor import visit


def upright(x, y, z):
    """A pose of the platform without rotation."""
    pose = Pose()
    pose.position.x, pose.position.y, pose.position.z = x, y, z
    pose.orientation.w = 1.0
    return pose


def solve(stack):
    """A circle, back to poses, and a pose that is too far."""
    circle = [2.0 * math.pi * k / 24 for k in range(25)]
    poses = [upright(0.03 * math.cos(a), 0.02 + 0.03 * math.sin(a), 0.48) for a in circle]
    service = "continuum_ik/solve_ik"
    answer = stack.ask(SolveContinuumIK, service, SolveContinuumIK.Request(poses=poses))
    print(
        f"{len(poses)} poses on a circle, solved in {1e3 * answer.status.solve_time:.2f} ms [mm]:"
    )
    for k in range(0, len(poses), 6):
        legs = answer.lengths[6 * k : 6 * k + 6]
        print(f"  {math.degrees(circle[k]):5.0f} deg  " + " ".join(f"{1e3 * l:7.2f}" for l in legs))

    request = SolveContinuumFK.Request(lengths=answer.lengths)
    request.guess_given, request.guess = True, poses[0]
    back = stack.ask(SolveContinuumFK, "continuum_ik/solve_fk", request)
    worst = max(
        math.dist(
            (a.position.x, a.position.y, a.position.z), (b.position.x, b.position.y, b.position.z)
        )
        for a, b in zip(poses, back.poses, strict=True)
    )
    print(f"From the lengths back to poses: the largest difference is {worst:.1e} m.")

    far = SolveContinuumIK.Request(poses=[upright(0.0, 0.0, 5.0)])
    answer = stack.ask(SolveContinuumIK, service, far, refused_is_fine=True)
    print("\nFive metres up is too far, and the answer says how far it goes:")
    print(f"  code {answer.status.code}: {answer.status.message}")
    print(f"  {100 * answer.reached[0]:.0f} % of the way, to z = {answer.best[0].position.z:.3f} m")


if __name__ == "__main__":
    with visit(__doc__) as stack:
        solve(stack)
