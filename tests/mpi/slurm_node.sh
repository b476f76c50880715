#!/bin/bash
# Runs once on each simulated host of two_hosts.sh, for a cluster that Slurm manages: its daemons, and on the first
# host a job step.
#
#     SCRATCH=DIRECTORY tests/mpi/two_hosts.sh --plain --hosts N -- tests/mpi/slurm_node.sh SRUN'S OPTIONS… COMMAND…
#
# DIRECTORY is new, has a short name (there are sockets in it), and all hosts have it. Ends on the first host with
# srun's status; with 77 and the reason where Slurm or munge is not here.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
for tool in munged slurmctld slurmd srun; do
  command -v "$tool" >/dev/null || { echo "skipped: there is no $tool (apt install slurm-wlm)" >&2; exit 77; }
done

# until_true COMMAND…: waits for it; a cluster that does not come together in a minute never will.
until_true() {
  local i
  for ((i = 0; i < 300; ++i)); do
    "$@" && return
    sleep 0.2
  done
  echo "$host: waited in vain for: $*" >&2
  exit 1
}
has_all_nodes() { [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = "$NUM_PROCESSES" ]; }

host=$(hostname)
own=$SCRATCH/$host
mkdir -p "$own"
export SLURM_CONF=$SCRATCH/slurm.conf
if [ "$PROCESS_ID" = 0 ]; then
  # Every process of the job may have all cores, and nothing is bound to them.
  cat >"$SLURM_CONF.new" <<END
ClusterName=pretended
SlurmctldHost=$host
SlurmUser=root
AuthInfo=socket=/dev/shm/munge
StateSaveLocation=$SCRATCH/state
SlurmdSpoolDir=$SCRATCH/%n/spool
SlurmctldPidFile=$SCRATCH/slurmctld.pid
SlurmdPidFile=$SCRATCH/%n/slurmd.pid
SlurmctldLogFile=$SCRATCH/slurmctld.log
SlurmdLogFile=$SCRATCH/%n/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/linear
SwitchType=switch/none
ReturnToService=2
SchedulerParameters=sched_interval=1
SlurmdParameters=config_overrides
NodeName=pretended[1-$NUM_PROCESSES] CPUs=64
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE MaxTime=INFINITE
END
  echo "CgroupPlugin=cgroup/v1" >"$SCRATCH/cgroup.conf"
  echo "PMIxCliTmpDirBase=/dev/shm" >"$SCRATCH/mpi.conf"  # which hosts do not share here
  mkdir -p "$SCRATCH/state"
  head -c 1024 /dev/urandom >"$SCRATCH/key"
  mv "$SLURM_CONF.new" "$SLURM_CONF"
fi
until_true test -s "$SLURM_CONF"

# This Slurm asks which control groups there are even where it shall use none; a namespace of networks shows none.
mount -t tmpfs none /sys/fs/cgroup

daemons=()
trap 'touch "$SCRATCH/done"; { kill -KILL "${daemons[@]}"; wait; } 2>/dev/null' EXIT
mkdir -p "$own/munge"
cp "$SCRATCH/key" "$own/munge/key"
chmod 700 "$own/munge" && chmod 400 "$own/munge/key"
munged --foreground --force --socket=/dev/shm/munge --key-file="$own/munge/key" --log-file="$own/munge/log" \
  --pid-file="$own/munge/pid" --seed-file="$own/munge/seed" 2>/dev/null &
daemons+=($!)
until_true test -S /dev/shm/munge
if [ "$PROCESS_ID" = 0 ]; then
  slurmctld -D >/dev/null 2>"$own/slurmctld.err" &
  daemons+=($!)
fi
mkdir -p "$own/spool"
slurmd -D -N "$host" >/dev/null 2>"$own/slurmd.err" &
daemons+=($!)

if [ "$PROCESS_ID" != 0 ]; then
  while [ ! -e "$SCRATCH/done" ] && kill -0 $PPID; do sleep 0.2; done
  exit 0
fi
until_true has_all_nodes
# With PMI-2 this Slurm's daemon of a step now and then does not see that its last process has ended.
status=0
timeout 60 srun --quiet --nodes="$NUM_PROCESSES" "$@" || status=$?
exit $status
