# As ament writes it: it looks at a variable that need not be set, so a shell with `set -u` stops here.
if [ -n "$AMENT_TRACE_SETUP_FILES" ]; then
  echo "# . \"/opt/ros/jazzy/setup.bash\""
fi
export ROS_DISTRO=jazzy ROS_VERSION=2 ROS_PYTHON_VERSION=3 ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET
export AMENT_PREFIX_PATH=/opt/ros/jazzy
export CMAKE_PREFIX_PATH=/opt/ros/jazzy
export PATH=/opt/ros/jazzy/bin:$PATH
site=$(echo /opt/ros/jazzy/lib/python3.*/site-packages)
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
LD_LIBRARY_PATH=/opt/ros/jazzy/lib:$(printf '%s:' "$site"/ros_*.libs)${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH _ROS_WHEELS_BOOTSTRAP_COMPLETE=1
