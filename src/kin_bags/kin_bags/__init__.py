"""rosbag2 bags: recording, reading, replay, regression, and the golden bags of the systems."""

__version__ = "0.1.0"
