"""Inverse and forward kinematics of a thousand delta robots in one request.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/03_a_thousand_delta_robots_at_once.py

It needs nothing of kinstack but its messages.
"""

import argparse
import array
import math

import rclpy
from kin_interfaces.msg import SolveStatus
from kin_interfaces.srv import MakeTrajectory, SolveDelta, WorkspaceMap


def ask(node, kind, name, request, patience=60.0):
    """Call a service and return its answer; stop with a sentence if there is none."""
    client = node.create_client(kind, name)
    if not client.wait_for_service(20.0):
        raise SystemExit(f"there is no service {name}; is the stack running? (./kinstack up)")
    future = client.call_async(request)
    rclpy.spin_until_future_complete(node, future, timeout_sec=patience)
    if not future.done():
        raise SystemExit(f"{name} did not answer within {patience:g} s")
    return future.result()


def solve(node, stack):
    """Platforms on a spiral: positions to angles, and back again."""
    count = 1000
    x, y, z = [], [], []
    for k in range(count):
        turn, radius = 0.05 * k, 0.012 * k / count
        x.append(radius * math.cos(turn))
        y.append(radius * math.sin(turn))
        z.append(-0.055 + 0.005 * math.sin(0.3 * turn))
    wanted = array.array("d", x + y + z)

    service = f"{stack}/gpu_kinematics/solve_delta"
    request = SolveDelta.Request(operation=SolveDelta.Request.INVERSE, count=count, data=wanted)
    angles = ask(node, SolveDelta, service, request)
    if angles.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"no solution: {angles.status.message}")
    print(f"{count - angles.failed} of {count} platforms can be reached, computed on the")
    print(f"{angles.backend} in {1e3 * angles.status.solve_time:.2f} ms.")
    first = ", ".join(f"{math.degrees(angles.data[arm * count]):.3f}" for arm in range(3))
    print(f"  the arms of the first robot: {first} deg")

    request = SolveDelta.Request(
        operation=SolveDelta.Request.FORWARD, count=count, data=angles.data
    )
    back = ask(node, SolveDelta, service, request)
    if back.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"no way back: {back.status.message}")
    worst = max(abs(a - b) for a, b in zip(wanted, back.data, strict=True) if not math.isnan(b))
    print(f"Back to positions: the largest difference is {worst:.1e} m.")

    print("\nA platform two metres away is refused, with the reason:")
    request = SolveDelta.Request(
        operation=SolveDelta.Request.INVERSE, count=1, data=[0.0, 0.0, -2.0]
    )
    answer = ask(node, SolveDelta, service, request)
    print(f"  code {answer.status.code}: {answer.status.message or 'mask ' + str(answer.mask[0])}")
    move(node, stack)


def move(node, stack):
    """A pick-and-place motion of one robot, and where it could do such things at all."""
    request = MakeTrajectory.Request(
        kind=MakeTrajectory.Request.PICK_AND_PLACE,
        count=1,
        start=[-0.01, 0.0, -0.055],
        goal=[0.01, 0.0, -0.055],
        height=0.005,
        samples=50,
    )
    answer = ask(node, MakeTrajectory, f"{stack}/gpu_kinematics/make_trajectory", request)
    if answer.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"no motion: {answer.status.message}")
    print(f"\nTwo centimetres across and back down take {1e3 * answer.duration[0]:.0f} ms,")
    print(f"with joints at up to {answer.peak_rate[0]:.1f} rad/s.")

    request = WorkspaceMap.Request(
        lower=[-0.04, -0.04, -0.1], upper=[0.04, 0.04, -0.02], cells=[17, 17, 17]
    )
    answer = ask(node, WorkspaceMap, f"{stack}/gpu_kinematics/workspace_map", request)
    if answer.status.code != SolveStatus.SUCCESS:
        raise SystemExit(f"no map: {answer.status.message}")
    print(f"It can work in {1e6 * answer.volume:.0f} cm^3; the largest cube in there has a side of")
    print(f"{1e3 * answer.cube_side:.0f} mm.")


def main():
    """Ask, and show the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stack", default="", help="namespace of the stack, such as /robot1")
    options, ros_arguments = parser.parse_known_args()
    rclpy.init(args=ros_arguments)
    node = rclpy.create_node("thousand_deltas", namespace="visitor")
    try:
        solve(node, options.stack.rstrip("/"))
    finally:
        node.destroy_node()
        rclpy.shutdown()


if __name__ == "__main__":
    main()
