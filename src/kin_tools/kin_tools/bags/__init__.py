"""rosbag2 bags: recording, reading, replay and regression."""
