#!/bin/sh
# Healthy means: the stack monitor has said within the last seconds that every expected node is ready. It writes so
# into a file, which costs next to nothing to read. Exit code 0 or 1.
file=${KINSTACK_STATE_FILE:-/tmp/kinstack/state}
[ -r "$file" ] || { echo "the stack monitor has not said anything yet"; exit 1; }
age=$(($(date +%s) - $(stat -c %Y "$file")))
[ "$age" -le "${KINSTACK_STATE_AGE:-10}" ] || { echo "the stack monitor is silent for $age s"; exit 1; }
read -r state <"$file"
echo "$state"
case $state in ready:*) exit 0 ;; *) exit 1 ;; esac
