"""The library stands without ROS."""

import subprocess
import sys

CODE = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('rclpy', 'kin_interfaces', 'rosidl_runtime_py', 'sensor_msgs'):
            raise ImportError(f'{name} is blocked')
sys.meta_path.insert(0, Block())
import hier_ik, hier_ik.pictures
s = hier_ik.Solver(hier_ik.tower(1))
assert s.solve().success
assert 'rclpy' not in sys.modules
"""


def test_library_imports_no_ros():
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=280)
