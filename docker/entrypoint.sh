#!/bin/sh
# Runs a command of kinstack, or any other with everything sourced, as this process: signals reach it directly.
#   up [ARG:=VALUE ...]   the stack; also without any word
#   check                 starts it, asks every node one question, stops, reports
#   call | bag | launch | run | shell ...   as ./kinstack does
# KINSTACK_NAMESPACE, if it is not empty, is the namespace of the stack.
set -eu

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
kinstack=$here/../kinstack

# The compiled kernels lie where they can be read only; numba wants to write beside them.
if [ -d "$here/../kernels" ] && [ ! -d "${NUMBA_CACHE_DIR:=/tmp/kinstack/numba}" ]; then
  mkdir -p "$(dirname "$NUMBA_CACHE_DIR")"
  cp -r "$here/../kernels" "$NUMBA_CACHE_DIR"
  chmod -R u+w "$NUMBA_CACHE_DIR"
  export NUMBA_CACHE_DIR
fi
if [ -n "${NUMBA_CPU_NAME:-}" ] && ! grep -qw avx2 /proc/cpuinfo; then
  echo "kinstack: the kernels of this image need a processor with AVX2; this one compiles its own, which takes minutes" >&2
  unset NUMBA_CPU_NAME NUMBA_CPU_FEATURES
fi

case "${1:-up}" in
  up) [ $# -eq 0 ] || shift; set -- up "$@" ;;
  check) shift; set -- up --check "$@" ;;
  call | bag | launch | run | shell | bench | docs | lint | setup | test | -h | --help | help) ;;
  -* | *:=*) set -- up "$@" ;;
  *) set -- shell "$@" ;;
esac
# What a stack that was killed has left behind says nothing about this one.
[ "$1" != up ] || [ -z "${KINSTACK_STATE_FILE:-}" ] || rm -f "$KINSTACK_STATE_FILE"
if [ "$1" = up ] && [ -n "${KINSTACK_NAMESPACE:-}" ]; then
  set -- "$@" "namespace:=$KINSTACK_NAMESPACE"
fi
if [ -f "/opt/ros/${ROS_DISTRO:-jazzy}/setup.bash" ] && [ "${KINSTACK_WHEELS:-}" != 1 ]; then
  # A file for bash, which uses variables that need not be set; and it asks for discovery on the whole network.
  exec bash -c 'range=${ROS_AUTOMATIC_DISCOVERY_RANGE:-SYSTEM_DEFAULT}
    . "/opt/ros/${ROS_DISTRO:-jazzy}/setup.bash"
    export ROS_AUTOMATIC_DISCOVERY_RANGE=$range
    exec "$@"' entrypoint "$kinstack" "$@"
fi
exec "$kinstack" "$@"
