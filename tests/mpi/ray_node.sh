#!/bin/bash
# Runs once on each simulated host of two_hosts.sh, for a cluster of Ray: its daemons, and on the first host a driver.
#
#     SCRATCH=DIRECTORY tests/mpi/two_hosts.sh --plain --hosts N -- tests/mpi/ray_node.sh PYTHON ARGUMENTS…
#
# DIRECTORY is new, has a short name (there are sockets in it), and all hosts have it. Each node has one core. Ends on the
# first host with the driver's status; with 77 and the reason where PYTHON has no Ray.
set -euo pipefail
python=$1
"$python" -c 'import ray' 2>/dev/null || { echo "skipped: there is no Ray in $python (pip install ray)" >&2; exit 77; }
ray() { "$python" -m ray.scripts.scripts "$@"; }

first=${COORDINATOR%:*}
own=${first%.*}.$((PROCESS_ID + 1)) # as two_hosts.sh numbers them
mkdir -p "/tmp/ray" && mount -t tmpfs none /tmp/ray # which hosts do not share
export RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=disabled # whose token is in the home of one host
common=(--node-ip-address="$own" --num-cpus=1 --object-store-memory=100000000 --disable-usage-stats)
trap 'touch "$SCRATCH/done"' EXIT
# await COUNT NAME: until that many hosts have said it; a cluster that does not come together in a minute never will.
await() {
  local i
  for ((i = 0; i < 300; ++i)); do
    [ "$(find "$SCRATCH" -maxdepth 1 -name "$2.*" | wc -l)" = "$1" ] && return
    [ -e "$SCRATCH/done" ] && exit 1
    sleep 0.2
  done
  echo "host $PROCESS_ID: waited in vain for: $2" >&2
  exit 1
}
start() {
  ray start "$@" "${common[@]}" >"$SCRATCH/log.$PROCESS_ID" 2>&1 && touch "$SCRATCH/begun.$PROCESS_ID" && return
  tail -n 3 "$SCRATCH/log.$PROCESS_ID" >&2
  exit 1
}
if [ "$PROCESS_ID" = 0 ]; then
  start --head --port=6379 --include-dashboard=false
  await "$NUM_PROCESSES" begun
  status=0
  "$@" || status=$?
  exit $status
fi
await 1 begun
start --address="$first:6379"
while [ ! -e "$SCRATCH/done" ] && kill -0 $PPID; do sleep 0.2; done
