#!/usr/bin/env bash
# A sweep on a real Slurm (tools/slurm/one_node_cluster.sh): an array of 3 shards and the merge that
# waits for them. One shard is killed in the middle and requeued, one is told that its time is up. The
# table must equal that of one run without Slurm, byte for byte.
#   tests/slurm_sweep_test.sh OPTIMUS
# Exit code 77: Slurm is not installed, nothing was tested.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
optimus=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shards=3
killed=1 late=2 # of the shards

for command in slurmctld slurmd munged sbatch; do
  if ! PATH=$PATH:/usr/sbin command -v "$command" >/dev/null; then
    echo "SKIPPED: $command is not installed (apt-get install slurm-wlm munge)"
    exit 77
  fi
done

scratch=$(mktemp -d)
stop_and_remove() {
  "$root/tools/slurm/one_node_cluster.sh" stop "$scratch/cluster" >/dev/null || true
  rm -rf "$scratch"
}
trap stop_and_remove EXIT
cd "$scratch"

fail() {
  echo "FAILED: $1" >&2
  tail -n 25 results/*.txt >&2 || true
  exit 1
}

# wait_until SECONDS WHAT COMMAND...
wait_until() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || fail "$what: not within the time"
    sleep 0.3
  done
}
no_job_left() { [ -z "$(squeue --noheader)" ]; }
says() { grep -q "$2" "$1" || fail "$(basename "$1") does not say \"$2\""; }

# 36 points; those whose micro-batches do not divide the batch are impossible.
write_sweep() {
  cat >sweep.textproto <<SWEEP
name: "slurm_test"
base: "$root/examples/04_small_gpt_tp.textproto"
axes { field: "batch.micro_batch" values: "1" values: "2" values: "3" values: "4" }
axes { field: "batch.global_batch" values: "12" values: "16" values: "24" }
axes { field: "batch.sequence_length" values: "1024" values: "2048" values: "4096" }
SWEEP
}

# Is OPTIMUS of the array. In their first run the shards $killed and $late stop when they have a few
# results: so both are certainly in the middle when it happens to them.
write_stopping_optimus() {
  cat >stopping_optimus <<WRAPPER
#!/usr/bin/env bash
optimus=$optimus
shard=\$(grep -o -- '--shard=[0-9]*' <<<"\$*" | tr -dc 0-9)
if [[ ! \$shard =~ ^($killed|$late)\$ ]] || [ "\${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
  exec "\$optimus" "\$@"
fi
"\$optimus" "\$@" &
sweep=\$!
until [ "\$("\$optimus" sweep show "results/shard-\$shard-of-$shards.sqlite" --csv \\
  --where="status = 'ok'" 2>/dev/null | wc -l)" -gt 2 ]; do
  kill -0 \$sweep || exit 1 # it is done already: the test will say that nothing stopped
done
if [ "\$shard" = $killed ]; then
  kill -KILL \$sweep
  touch stopped.$killed
  exec sleep 600
fi
kill -STOP \$sweep
trap 'kill -TERM \$sweep; kill -CONT \$sweep' TERM
touch stopped.$late
while kill -0 \$sweep 2>/dev/null; do wait \$sweep; done
wait \$sweep
WRAPPER
  chmod +x stopping_optimus
}

cluster=$("$root/tools/slurm/one_node_cluster.sh" start "$scratch/cluster")
eval "$cluster"
write_sweep
write_stopping_optimus

submitted=$(OPTIMUS=$scratch/stopping_optimus "$root/tools/slurm/sweep_array.sh" $shards \
  sweep.textproto results --sbatch=--cpus-per-task=1)
echo "$submitted"
array=$(sed -n 's/^array.* job //p' <<<"$submitted")
wait_until 90 "shard $killed in the middle" test -e stopped.$killed
scontrol requeue "${array}_$killed"
wait_until 60 "shard $late in the middle" test -e stopped.$late
scancel --batch --signal=USR1 "${array}_$late" # as Slurm does 2 minutes before the time limit
"$optimus" sweep sweep.textproto --db=whole.sqlite >whole.txt
wait_until 100 "the end of all jobs" no_job_left

[ -e results/sweep.sqlite ] || fail "no merge"
says results/merge-*.txt "36 points of 3 databases: 36 done (3 impossible), 0 failed, 0 missing"
for shard in $killed $late; do
  log=results/log-${array}_$shard.txt
  says "$log" "run 2"
  says "$log" "found done" # by the second run
  says "$log" "shard $shard of $shards is done"
done
says "results/log-${array}_$late.txt" "the time limit is near"
says "results/log-${array}_0.txt" "run 1"
if grep -q "run 2" "results/log-${array}_0.txt"; then fail "shard 0 ran twice"; fi
"$optimus" sweep show whole.sqlite --csv >whole.csv
"$optimus" sweep show results/sweep.sqlite --csv >merged.csv
[ "$(wc -l <whole.csv)" -eq 37 ] || fail "the whole table has $(wc -l <whole.csv) lines, not 37"
cmp whole.csv merged.csv || fail "the tables differ"
"$optimus" sweep merge results/sweep.sqlite results/shard-*.sqlite
"$optimus" sweep show results/sweep.sqlite --csv | cmp - merged.csv || fail "merging again differs"
echo "OK: $(scontrol --version): the merged table of $shards shards equals the whole run's"
