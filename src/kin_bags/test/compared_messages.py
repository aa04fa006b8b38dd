"""Decoded messages to compare."""

import numpy as np
from rosbags.typesys import Stores, get_typestore

from kin_bags.compare import Tolerances, compare

STORE = get_typestore(Stores.ROS2_JAZZY)
JointState = STORE.types["sensor_msgs/msg/JointState"]
Header = STORE.types["std_msgs/msg/Header"]
Time = STORE.types["builtin_interfaces/msg/Time"]


def joints(values, name="a", sec=0):
    numbers = np.asarray(values, float)
    empty = np.zeros(0)
    return JointState(Header(Time(sec, 0), ""), [name], numbers, empty, empty)


def verdict(expected, got, rules):
    return compare([("/t", expected)], [("/t", got)], Tolerances({"/t": rules}))
