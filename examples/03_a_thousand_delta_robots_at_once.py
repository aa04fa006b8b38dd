"""Inverse and forward kinematics of a thousand delta robots in one request.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/03_a_thousand_delta_robots_at_once.py

It needs nothing of kinstack but its messages and visitor.py beside it.
"""

import array
import math

from kin_interfaces.srv import MakeTrajectory, SolveDelta, WorkspaceMap
from visitor import visit


def solve(stack):
    """Platforms on a spiral: positions to angles, and back again."""
    count = 1000
    x, y, z = [], [], []
    for k in range(count):
        turn, radius = 0.05 * k, 0.012 * k / count
        x.append(radius * math.cos(turn))
        y.append(radius * math.sin(turn))
        z.append(-0.055 + 0.005 * math.sin(0.3 * turn))
    wanted = array.array("d", x + y + z)

    service = "gpu_kinematics/solve_delta"
    request = SolveDelta.Request(operation=SolveDelta.Request.INVERSE, count=count, data=wanted)
    angles = stack.ask(SolveDelta, service, request)
    print(f"{count - angles.failed} of {count} platforms can be reached, computed on the")
    print(f"{angles.backend} in {1e3 * angles.status.solve_time:.2f} ms.")
    first = ", ".join(f"{math.degrees(angles.data[arm * count]):.3f}" for arm in range(3))
    print(f"  the arms of the first robot: {first} deg")

    request = SolveDelta.Request(
        operation=SolveDelta.Request.FORWARD, count=count, data=angles.data
    )
    back = stack.ask(SolveDelta, service, request)
    worst = max(abs(a - b) for a, b in zip(wanted, back.data, strict=True) if not math.isnan(b))
    print(f"Back to positions: the largest difference is {worst:.1e} m.")

    print("\nA platform two metres away is refused, with the reason:")
    request = SolveDelta.Request(
        operation=SolveDelta.Request.INVERSE, count=1, data=[0.0, 0.0, -2.0]
    )
    answer = stack.ask(SolveDelta, service, request, refused_is_fine=True)
    print(f"  code {answer.status.code}: {answer.status.message or 'mask ' + str(answer.mask[0])}")
    move(stack)


def move(stack):
    """A pick-and-place motion of one robot, and where it could do such things at all."""
    request = MakeTrajectory.Request(
        kind=MakeTrajectory.Request.PICK_AND_PLACE,
        count=1,
        start=[-0.01, 0.0, -0.055],
        goal=[0.01, 0.0, -0.055],
        height=0.005,
        samples=50,
    )
    answer = stack.ask(MakeTrajectory, "gpu_kinematics/make_trajectory", request)
    print(f"\nTwo centimetres across and back down take {1e3 * answer.duration[0]:.0f} ms,")
    print(f"with joints at up to {answer.peak_rate[0]:.1f} rad/s.")

    request = WorkspaceMap.Request(
        lower=[-0.04, -0.04, -0.1], upper=[0.04, 0.04, -0.02], cells=[17, 17, 17]
    )
    answer = stack.ask(WorkspaceMap, "gpu_kinematics/workspace_map", request)
    print(f"It can work in {1e6 * answer.volume:.0f} cm^3; the largest cube in there has a side of")
    print(f"{1e3 * answer.cube_side:.0f} mm.")


if __name__ == "__main__":
    with visit(__doc__) as stack:
        solve(stack)
