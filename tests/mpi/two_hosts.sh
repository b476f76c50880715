#!/bin/bash
# Runs a command, under mpirun or without, on simulated hosts: each has its own network, host name, IPC names and
# /dev/shm on this machine, and messages between them go through a bridge of virtual cables.
#
#     tests/mpi/two_hosts.sh [--own-cores] [--hosts N] [--ranks PER_HOST] [--mca NAME VALUE]… [-x NAME=VALUE]… COMMAND…
#     tests/mpi/two_hosts.sh --hydra [--hosts N] [--ranks PER_HOST] COMMAND…
#     tests/mpi/two_hosts.sh --plain [--hosts N] [--ranks PER_HOST] COMMAND…
#
# With --own-cores each host has a share of the cores for itself, as hosts have; otherwise all share all of them.
# With --hydra it is MPICH's mpiexec. With --plain there is no mpirun: each process has the variables COORDINATOR, NUM_PROCESSES
# and PROCESS_ID, what jax.distributed.initialize() takes. Host i's end of its cable is mpPIDci, in the bridge mpPIDbr,
# where PID is this script's. Ends with the status of mpirun, or of the last
# process that failed; with 77 and the reason where such hosts cannot be made (no root, or
# the kernel forbids it).
set -euo pipefail

hosts=2
ranks=1
options=()
cores=()
plain='' launcher=mpirun
while [ $# -gt 0 ]; do
  case $1 in
    --hosts) hosts=$2; shift 2 ;;
    --ranks) ranks=$2; shift 2 ;;
    --own-cores) read -ra cores < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))'); shift ;;
    --plain) plain=1 launcher=; shift ;;
    --hydra) launcher=mpiexec.hydra; shift ;;
    --mca) options+=("$1" "$2" "$3"); shift 3 ;;
    -x) options+=("$1" "$2"); shift 2 ;;
    --) shift; break ;;
    -*) echo "unknown option $1" >&2; exit 2 ;;
    *) break ;;
  esac
done

# cores_of NUMBER: taskset and the cores of that host; nothing where all hosts share all cores.
cores_of() {
  local each=$((${#cores[@]} / hosts)) mine
  [ ${#cores[@]} = 0 ] && return
  [ $each = 0 ] && each=1
  mine=$(printf '%s,' "${cores[@]:$((($1 - 1) * each % ${#cores[@]})):$each}")
  echo "taskset -c ${mine%,}"
}

skip() {
  echo "skipped: $*" >&2
  exit 77
}

[ "$(id -u)" = 0 ] || skip "making network namespaces needs root"
for tool in ip unshare $launcher; do
  command -v "$tool" >/dev/null || skip "there is no command $tool"
done

# Names and addresses of our own, so that several of these may run at a time.
tag=mp$$
net=10.$((64 + $$ / 256 % 128)).$(($$ % 256))
scratch=$(mktemp -d)

clean_up() {
  local i pids
  trap '' INT TERM HUP # a second one would leave half of the hosts
  for ((i = 1; i <= hosts; ++i)); do
    pids=$(ip netns pids "${tag}h$i" 2>/dev/null) && [ -n "$pids" ] && kill -KILL $pids 2>/dev/null
    ip netns delete "${tag}h$i" 2>/dev/null
  done
  ip link delete "${tag}br" 2>/dev/null
  rm -rf "$scratch"
}
trap 'set +e; clean_up' EXIT

ip link add "${tag}br" type bridge 2>"$scratch/error" ||
  skip "no network bridge: $(cat "$scratch/error")"
ip link set "${tag}br" up
echo "127.0.0.1 localhost" >"$scratch/names"
for ((i = 1; i <= hosts; ++i)); do
  ip netns add "${tag}h$i" 2>"$scratch/error" || skip "no namespace: $(cat "$scratch/error")"
  # Not BBR, which some machines have: it sends no faster than it believes that a line is, which is nothing that a virtual cable has,
  # and at times it sends nothing at all for 60 ms. Where this cannot be chosen (/proc/sys of a container), that is how it is.
  ip netns exec "${tag}h$i" sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control' 2>/dev/null || true
  ip link add "${tag}c$i" type veth peer name eth0 netns "${tag}h$i" 2>"$scratch/error" ||
    skip "no virtual cable: $(cat "$scratch/error")"
  ip link set "${tag}c$i" master "${tag}br" up
  ip -n "${tag}h$i" address add "$net.$i/24" dev eth0
  ip -n "${tag}h$i" link set eth0 up
  ip -n "${tag}h$i" link set lo up
  echo "$net.$i slots=$ranks" >>"$scratch/hosts"
  echo "$net.$i pretended$i" >>"$scratch/names"
done

for ((i = 1; i <= hosts; ++i)); do cores_of $i; done >"$scratch/cores"
# enter NUMBER COMMAND…: as on that host.
cat >"$scratch/enter" <<END
#!/bin/bash
number=\$1
shift
exec \$(sed -n "\${number}p" "$scratch/cores") ip netns exec "${tag}h\$number" unshare --uts --ipc --mount --propagation private bash -c '
  hostname pretended'\$number'
  mount -t tmpfs none /dev/shm
  mount --bind "$scratch/names" /etc/hosts
  exec "\$@"' enter "\$@"
END
# What mpirun takes for ssh: AGENT [OPTION…] ADDRESS COMMAND
cat >"$scratch/agent" <<END
#!/bin/bash
while [[ \$1 = -* ]]; do shift; done
address=\$1
shift
exec "$scratch/enter" "\${address##*.}" bash -c "\$*"
END
chmod +x "$scratch/enter" "$scratch/agent"
"$scratch/enter" 1 true 2>"$scratch/error" || skip "no namespaces: $(cat "$scratch/error")"

if [ -n "$plain" ]; then
  export COORDINATOR=$net.1:$((20000 + RANDOM % 10000)) NUM_PROCESSES=$((hosts * ranks))
  processes=()
  for ((rank = 0; rank < hosts * ranks; ++rank)); do
    PROCESS_ID=$rank "$scratch/enter" $((rank / ranks + 1)) "$@" &
    processes+=($!)
  done
  status=0
  for process in "${processes[@]}"; do wait "$process" || status=$?; done
  exit $status
fi

if [ "$launcher" = mpiexec.hydra ]; then
  sed 's/ slots=/:/' "$scratch/hosts" >"$scratch/machines"
  "$scratch/enter" 1 mpiexec.hydra -f "$scratch/machines" -n $((hosts * ranks)) -iface eth0 \
    -launcher ssh -launcher-exec "$scratch/agent" "$@"
  exit
fi

# Host names are addresses, and only the simulated network is used; the hosts share the cores, so
# nothing is bound to them.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$scratch/enter" 1 mpirun --hostfile "$scratch/hosts" -n $((hosts * ranks)) \
  --map-by node:OVERSUBSCRIBE --rank-by slot --bind-to none \
  --mca plm rsh --mca plm_rsh_agent "$scratch/agent" --mca plm_rsh_no_tree_spawn 1 \
  --mca orte_keep_fqdn_hostnames 1 \
  --mca btl self,vader,tcp --mca btl_tcp_if_include "$net.0/24" \
  --mca oob_tcp_if_include "$net.0/24" "${options[@]}" "$@"
