"""The library must work where there is no ROS."""

import subprocess
import sys


def test_the_library_imports_no_ros():
    code = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('rclpy', 'kin_interfaces', 'geometry_msgs'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "import kin_solvers, kin_solvers.command, kin_solvers.plot, kin_solvers.planted\n"
        "import kin_solvers.dask_engine\n"
        "print('rclpy' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"
