#!/usr/bin/env bash
# Healthy means: the stack monitor says that every expected node is ready. Exit code 0 or 1.
set -uo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
namespace=${KINSTACK_NAMESPACE:-}
namespace=${namespace#/}
"$here/entrypoint.sh" python3 -m kin_tools.call \
  "/${namespace:+$namespace/}stack_monitor/check_ready" kin_interfaces/srv/CheckReady '{}' || exit 1
