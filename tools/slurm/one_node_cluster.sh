#!/usr/bin/env bash
# A Slurm cluster of one node, this machine, for tests: munged, slurmctld and slurmd as Debian has them
# (packages slurm-wlm and munge), without systemd and cgroups, so in containers as well.
#   tools/slurm/one_node_cluster.sh start DIR    prints the line to export when the node is idle
#   tools/slurm/one_node_cluster.sh status DIR
#   tools/slurm/one_node_cluster.sh stop DIR     also cancels what runs; logs stay in DIR
# DIR holds everything: configuration, sockets, the key of munge, state, logs. Several clusters at
# once are fine, each with a DIR and ports of its own. As root, or as any user, whose jobs are then the
# only ones that run. OPTIMUS_SLURM_CPUS: CPUs that the node says it has (4, or the real number if that
# is more).
set -euo pipefail

start_limit_s=60

fail() {
  echo "one_node_cluster: error: $1" >&2
  exit 1
}

usage() {
  echo "usage: tools/slurm/one_node_cluster.sh start|stop|status DIR" >&2
  exit 1
}

# Debian keeps daemons where a user's PATH does not lead.
PATH=$PATH:/usr/sbin:/sbin

check_installed() {
  local command
  for command in munged slurmctld slurmd sinfo scontrol sbatch; do
    command -v "$command" >/dev/null ||
      fail "$command is not installed: apt-get install slurm-wlm munge"
  done
}

# A TCP port that nobody listens on; other than $1.
free_port() {
  local port try
  for try in $(seq 100); do
    port=$((20000 + RANDOM % 12000))
    [ "$port" != "${1:-}" ] || continue
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port" && return; }
  done
  fail "no free port in $try tries"
}

# The key, and a socket whose path is short enough (107 bytes).
write_munge() {
  mkdir -p munge
  chmod 0700 munge
  [ -s munge/key ] || (umask 077 && head -c 1024 /dev/urandom >munge/key)
  [ "${#munge_socket}" -lt 108 ] || fail "$munge_socket: too long for a socket; use a shorter DIR"
}

write_slurm_conf() {
  local host cpus ctld_port slurmd_port
  host=$(hostname)
  host=${host%%.*}
  cpus=${OPTIMUS_SLURM_CPUS:-$(($(nproc) > 4 ? $(nproc) : 4))}
  ctld_port=$(free_port)
  slurmd_port=$(free_port "$ctld_port")
  mkdir -p state spool log
  cat >slurm.conf <<CONF
ClusterName=one_node
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$ctld_port
SlurmdPort=$slurmd_port
AuthType=auth/munge
CredType=cred/munge
# A requeued job starts when the credential of its last run has expired: 5 s, not 2 minutes.
AuthInfo=socket=$munge_socket,cred_expire=5
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.log
# Nothing that needs cgroups or a database.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
KillWait=5
ReturnToService=2
# CPUs and memory are what this file says, also where the machine has less.
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=65536 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
  # Nothing uses it, and this plugin starts without cgroups and without systemd too.
  echo "CgroupPlugin=cgroup/v1" >cgroup.conf
}

# NAME COMMAND...: starts a daemon that puts itself into the background.
daemon() {
  local name=$1
  shift
  "$@" </dev/null >>"log/$name.out" 2>&1 || give_up "$name did not start"
}

give_up() {
  local log
  {
    for log in log/*; do
      echo "--- the last lines of $dir/$log"
      tail -n 15 "$log"
    done
  } >&2
  stop >/dev/null || true
  fail "$1"
}

node_state() { timeout 10 sinfo --noheader --format=%T 2>/dev/null || true; }

wait_until_idle() {
  local begin=$SECONDS
  until [ "$(node_state)" = idle ]; do
    [ $((SECONDS - begin)) -lt "$start_limit_s" ] ||
      give_up "no idle node after $start_limit_s s, its state: $(node_state)"
    sleep 0.5
  done
}

start() {
  check_installed
  [ -z "$(running slurmctld)$(running slurmd)$(running munged)" ] ||
    fail "$dir: has a cluster that runs; stop it first"
  write_munge
  write_slurm_conf
  # --force: in a folder that only its owner may enter, which is enough for one user.
  daemon munged munged --force --key-file="$dir/munge/key" --socket="$munge_socket" \
    --pid-file="$dir/munged.pid" --log-file="$dir/log/munged.log" --seed-file="$dir/munge/seed"
  daemon slurmctld slurmctld -c -f "$SLURM_CONF"
  daemon slurmd slurmd -f "$SLURM_CONF"
  wait_until_idle
  echo "export SLURM_CONF=$(printf %q "$SLURM_CONF")"
}

# The process of a daemon of this DIR, if it is alive.
running() {
  local pid
  pid=$(cat "$1.pid" 2>/dev/null) || return 0
  if [[ $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) == *"$1"*"$dir"* ]]; then echo "$pid"; fi
}

stop() {
  local name pid tries
  if [ -n "$(running slurmctld)" ] && [ -n "$(running slurmd)" ]; then
    timeout 10 scancel --user="$(id -un)" 2>/dev/null || true
    for tries in $(seq 40); do
      [ -n "$(timeout 10 squeue --noheader 2>/dev/null)" ] || break
      sleep 0.5
    done
  fi
  for name in slurmd slurmctld munged; do
    pid=$(running "$name")
    [ -n "$pid" ] || continue
    kill "$pid"
    for tries in $(seq 100); do
      [ -n "$(running "$name")" ] || break
      [ "$tries" -lt 100 ] || kill -9 "$pid"
      sleep 0.1
    done
  done
  echo "stopped; logs are in $dir/log"
}

status() {
  local name pid all=0
  for name in munged slurmctld slurmd; do
    pid=$(running "$name")
    if [ -n "$pid" ]; then
      echo "$name: runs, process $pid"
    else
      echo "$name: does not run"
      all=1
    fi
  done
  [ $all -eq 0 ] || return 1
  echo "node: $(node_state)"
  timeout 10 squeue
}

[ $# -eq 2 ] || usage
case $1 in
  start) mkdir -p "$2" ;;
  stop | status) [ -d "$2" ] || fail "$2: no such folder" ;;
  *) usage ;;
esac
cd "$2"
dir=$PWD
[[ $dir != *[[:space:]]* ]] || fail "$dir: Slurm takes no folder with spaces in its name"
munge_socket=$dir/munge/socket
export SLURM_CONF=$dir/slurm.conf
"$1"
