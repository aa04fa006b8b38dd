"""All configurations of closed mechanisms, and all paths of an arm, with proofs.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/01_all_solutions_of_a_mechanism.py

It needs nothing of kinstack but its messages and visitor.py beside it.
"""

import math

from geometry_msgs.msg import Point, Pose
from kin_interfaces.srv import SolveAllIK, SolveManifold, SolvePath
from visitor import visit


def solve(stack):
    """A Bennett linkage, all of its motion; a Puma arm, all of its postures and paths."""
    request = SolveManifold.Request(timeout=30.0)
    request.problem.mechanism = "bennett"
    answer = stack.ask(SolveManifold, "kin_solvers/solve_manifold", request)
    found = answer.manifold
    print(f"The Bennett linkage moves in {found.component_count} curve(s), covered by")
    print(
        f"{found.box_count} boxes of side {found.sigma:g} rad in {answer.status.solve_time:.3f} s;"
    )
    print("nothing lies outside of them." if found.complete else "the search was cut short.")
    width = len(found.variables)
    print(
        "  one of them: "
        + ", ".join(
            f"{name} in [{found.lower[v]:+.2f}, {found.upper[v]:+.2f}]"
            for v, name in enumerate(found.variables[:width])
        )
    )

    request = SolveAllIK.Request(arm="puma560", timeout=30.0)
    pose = request.target.pose  # in the base of the arm: the header names no frame
    position, orientation = pose.position, pose.orientation
    position.x, position.y, position.z = 0.4, 0.15, 0.3
    orientation.w = 1.0
    answer = stack.ask(SolveAllIK, "kin_solvers/solve_all_ik", request)
    joints = len(answer.joints)
    print(
        f"\nThe Puma 560 at ({position.x}, {position.y}, {position.z}) m: {answer.status.message}"
    )
    print(f"{'there are no others' if answer.complete else 'there may be more'} [deg]:")
    for k in range(answer.count):
        row = answer.positions[k * joints : (k + 1) * joints]
        proven = "proven" if answer.certified[k] else "not proven"
        print("  " + " ".join(f"{math.degrees(q):8.2f}" for q in row) + f"   {proven}")

    path = SolvePath.Request(timeout=30.0)
    path.problem.arm, path.problem.max_step = "puma560", 0.005
    path.problem.seed = list(answer.positions[:joints])
    end = Point(x=position.x, y=-position.y, z=position.z)
    path.problem.waypoints = [pose, Pose(position=end, orientation=orientation)]
    found = stack.ask(SolvePath, "kin_solvers/solve_path", path, refused_is_fine=True)
    print(f"\nOn a line to y = {end.y} m: {found.status.message}")
    for k in range(found.tree.branch_count):
        places = found.tree.begin_places[k], found.tree.end_places[k]
        print(f"  branch {k}: pose {places[0]:.2f} to {places[1]:.2f}")


if __name__ == "__main__":
    with visit(__doc__) as stack:
        solve(stack)
