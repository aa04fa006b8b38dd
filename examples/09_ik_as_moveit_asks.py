"""Forward and inverse kinematics the way MoveIt asks, by standard messages alone.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/09_ik_as_moveit_asks.py

Any node that answers MoveIt's services will do: --node and --link name it and one of its links.
MoveIt's own plugin asks hier_ik/plugin_ik, which leaves collisions to the one who asks.
"""

from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from visitor import visit

ARGUMENTS = {
    "--node": {"default": "hier_ik", "help": "the node to ask"},
    "--link": {"default": "P15", "help": "the link to move"},
    "--offset": {"type": float, "nargs": 3, "default": (0.05, 0.0, -0.1), "help": "how far [m]"},
}


def place(pose):
    """A position for people."""
    return f"{pose.position.x:.4f} {pose.position.y:.4f} {pose.position.z:.4f}"


def solve(stack):
    """Where a link is, and which posture moves it by an offset."""
    node, link = stack.options.node, stack.options.link
    question = GetPositionFK.Request(fk_link_names=[link])
    here = stack.ask(GetPositionFK, f"{node}/compute_fk", question).pose_stamped[0]
    print(f"{link} in {here.header.frame_id} [m]: {place(here.pose)}")

    target = PoseStamped(header=here.header, pose=here.pose)
    target.header.stamp.sec = target.header.stamp.nanosec = 0  # of the frame: the latest
    for axis, step in zip("xyz", stack.options.offset, strict=True):
        setattr(target.pose.position, axis, getattr(here.pose.position, axis) + step)
    request = GetPositionIK.Request()
    request.ik_request.ik_link_name, request.ik_request.pose_stamped = link, target
    request.ik_request.timeout.sec = 30
    state = stack.ask(GetPositionIK, f"{node}/compute_ik", request).solution
    print(f"a posture of {len(state.joint_state.name)} joints for {place(target.pose)}")

    question.robot_state = state
    there = stack.ask(GetPositionFK, f"{node}/compute_fk", question).pose_stamped[0]
    ends = [(getattr(p.position, a) for a in "xyz") for p in (there.pose, target.pose)]
    gap = max(abs(a - b) for a, b in zip(*ends, strict=True))
    print(f"at that posture it is at {place(there.pose)}, off by {gap:.1e} m")
    if gap > 1e-4:
        raise SystemExit("that is not where it should be")


if __name__ == "__main__":
    with visit(__doc__, ARGUMENTS) as stack:
        solve(stack)
