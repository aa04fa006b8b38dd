"""rosbag2 bags: recording, reading, replay, regression, and the golden bags of the systems."""
