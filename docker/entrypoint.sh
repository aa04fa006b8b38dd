#!/usr/bin/env bash
# Runs one command with ROS and kinstack sourced, as this process: signals reach it directly.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
setup="/opt/ros/${ROS_DISTRO:-jazzy}/setup.bash"
if [ -f "$setup" ] && [ "${KINSTACK_WHEELS:-}" != 1 ]; then
  set +u
  # shellcheck disable=SC1090
  . "$setup"
  set -u
fi
[ $# -gt 0 ] || set -- ros2 launch kin_bringup full_stack.launch.xml
# The command of native mode; `shell` execs what follows.
exec "$here/../kinstack" shell "$@"
