"""Joint states and tf of a robot with closed loops, by standard messages alone.

Start the stack with ./kinstack up, then in another terminal:

    ./kinstack shell python examples/08_joint_states_of_a_closed_loop.py

The tower's legs are driven through closed loops. Its joint states are those of any robot, and tf
has all of its links: the top of each leg of the first block meets the plate above it.
"""

import time

import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage
from visitor import visit

#: Half the distance of the two legs, and the length of a bar [m].
HALF_WIDTH, BAR = 0.4, 0.4


def turned(q, v):
    """A vector turned by a quaternion."""
    x, y, z, w = q
    a = 2.0 * (y * v[2] - z * v[1]), 2.0 * (z * v[0] - x * v[2]), 2.0 * (x * v[1] - y * v[0])
    return (
        v[0] + w * a[0] + y * a[2] - z * a[1],
        v[1] + w * a[1] + z * a[0] - x * a[2],
        v[2] + w * a[2] + x * a[1] - y * a[0],
    )


def in_frame(frames, root, frame, point):
    """A point of a frame as the root sees it; None while tf does not know the way."""
    while frame != root:
        if frame not in frames:
            return None
        parent, transform = frames[frame]
        t, q = transform.translation, transform.rotation
        x, y, z = turned((q.x, q.y, q.z, q.w), point)
        frame, point = parent, (x + t.x, y + t.y, z + t.z)
    return point


def watch(visitor):
    """Listen until the joints and all links of a block have been heard of."""
    frames, states = {}, []

    def keep(message):
        for stamped in message.transforms:
            frames[stamped.child_frame_id] = (stamped.header.frame_id, stamped.transform)

    node = visitor.node
    latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_subscription(TFMessage, "/tf", keep, 100)
    node.create_subscription(TFMessage, "/tf_static", keep, latched)
    node.create_subscription(
        JointState, f"{visitor.namespace}/hier_ik/joint_states", states.append, 10
    )
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.2)
        gaps = {}
        for side, letter in ((-1, "L"), (1, "R")):
            hinge = in_frame(frames, "P0", "P1", (side * HALF_WIDTH, 0.0, 0.0))
            top = in_frame(frames, "P0", f"A1{letter}.b", (0.0, 0.0, BAR))
            if hinge and top:
                gaps[letter] = max(abs(a - b) for a, b in zip(hinge, top, strict=True))
        if states and len(gaps) == 2:
            return states[-1], frames, gaps
    raise SystemExit("no joint states or links of the tower; is the stack running?")


def main():
    """Listen, and show what was heard."""
    with visit(__doc__) as visitor:
        state, frames, gaps = watch(visitor)
        print(f"{len(state.name)} joints, such as {state.name[0]} at {state.position[0]:.4f} rad")
        print(f"{len(frames)} frames in tf")
        for letter, gap in gaps.items():
            print(f"leg A1{letter} and the plate above it are {1e6 * gap:.1f} micrometres apart")
        if max(gaps.values()) > 1e-3:
            raise SystemExit("a loop is open")


if __name__ == "__main__":
    main()
