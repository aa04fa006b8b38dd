#!/usr/bin/env bash
# Makes a keystore for DDS security: one enclave with its own key and permissions for every node in
# docker/security/policy.xml. Needs openssl; in a clone it needs no ROS.
#   docker/make_keystore.sh [FOLDER [NAMESPACE ...]]
# FOLDER: default docker/keystore, which git ignores. NAMESPACE: those that the stacks will run in, such as
# "/ /control" for the two hosts of compose.two-hosts.yaml; default: none.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
keystore=${1:-$here/keystore}
[ $# -gt 0 ] && shift
"$here/../kinstack" shell python3 -m kin_tools.keystore "$here/security/policy.xml" "$keystore" "$@"
echo "start the stack with: ROS_SECURITY_ENABLE=true ROS_SECURITY_STRATEGY=Enforce ROS_SECURITY_KEYSTORE=$keystore"
echo "on a ROS 2 installation or in the ROS image: the wheels of ROS 2 are built without DDS security"
