#!/usr/bin/env bash
# Makes a keystore for DDS security: one enclave with its own key and permissions for every node in
# docker/security/policy.xml. Needs a ROS 2 with sros2 (every ros-base has it).
#   docker/make_keystore.sh [FOLDER [NAMESPACE ...]]
# FOLDER: default docker/keystore, which git ignores. NAMESPACE: those that the stacks will run in, such as
# "/ /control" for the two hosts of compose.two-hosts.yaml; default: none.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
keystore=${1:-$here/keystore}
[ $# -gt 0 ] && shift
policy="$here/security/policy.xml"

if ! command -v ros2 >/dev/null; then
  echo "make_keystore: there is no 'ros2' here: source a ROS 2 installation, or run this in the image:" >&2
  echo "  docker run --rm -v \"\$PWD/docker:/opt/kinstack/docker\" kinstack docker/make_keystore.sh" >&2
  exit 1
fi
if [ -e "$keystore/private" ]; then
  echo "make_keystore: $keystore has keys already; remove it first if new ones are wanted" >&2
  exit 1
fi
umask 077
mkdir -p "$keystore"
if [ $# -gt 0 ]; then
  "$here/entrypoint.sh" python3 -m kin_tools.policy --from "$policy" --into "$@" --output "$keystore/policy.xml"
  policy="$keystore/policy.xml"
fi
ros2 security create_keystore "$keystore"
ros2 security generate_artifacts -k "$keystore" -p "$policy"
echo "keys of $(grep -c '<enclave ' "$policy") enclaves are in $keystore"
echo "start the stack with: ROS_SECURITY_ENABLE=true ROS_SECURITY_STRATEGY=Enforce ROS_SECURITY_KEYSTORE=$keystore"
