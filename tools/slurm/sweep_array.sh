#!/usr/bin/env bash
# Submits a sweep to Slurm as an array of shards, and a job that merges their databases when all are
# done.
#   tools/slurm/sweep_array.sh SHARDS SWEEP.textproto OUTDIR [--sbatch=OPTION]... [flags of optimus sweep]
#   tools/slurm/sweep_array.sh 16 examples/sweeps/strong_scaling.textproto results \
#     --sbatch=--partition=long --sbatch=--cpus-per-task=32 --time-limit=10min
# OUTDIR: shard-i-of-n.sqlite, log-JOB_TASK.txt, and at the end sweep.sqlite and merge-JOB.txt.
# --sbatch options go to both jobs. OPTIMUS, OPTIMUS_REQUEUES: as in tools/slurm/sweep.sbatch.
# Submitting again goes on with what is there.
set -euo pipefail

fail() {
  echo "sweep_array: error: $1" >&2
  exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 3 ] || fail "usage: tools/slurm/sweep_array.sh SHARDS SWEEP.textproto OUTDIR \
[--sbatch=OPTION]... [flags of optimus sweep]"
shards=$1 sweep=$2 folder=$3
shift 3
[[ $shards =~ ^[1-9][0-9]*$ ]] || fail "SHARDS=$shards: must be a number above 0"
sbatch_options=() sweep_flags=()
for argument in "$@"; do
  case $argument in
    --sbatch=*) sbatch_options+=("${argument#--sbatch=}") ;;
    --db=* | --db | --shard=* | --shard) fail "$argument: every shard has its own" ;;
    *) sweep_flags+=("$argument") ;;
  esac
done
command -v sbatch >/dev/null || fail "no sbatch: this is no machine of a Slurm cluster"

if [ -z "${OPTIMUS:-}" ]; then
  for build in dev release; do
    if [ -x "$here/../../build/$build/bin/optimus" ]; then
      OPTIMUS=$(cd "$here/../../build/$build/bin" && pwd)/optimus
    fi
  done
  OPTIMUS=${OPTIMUS:-$(command -v optimus)} || fail "no optimus: build it, or set OPTIMUS"
fi
[ -x "$OPTIMUS" ] || fail "OPTIMUS: $OPTIMUS is no program"
export OPTIMUS

# What is wrong with the sweep is said now, not by every task.
"$OPTIMUS" sweep "$sweep" --dry-run >/dev/null
mkdir -p "$folder"

unset OPTIMUS_SHARDS
array=$(sbatch --parsable --array="0-$((shards - 1))" --output="$folder/log-%A_%a.txt" \
  "${sbatch_options[@]}" "$here/sweep.sbatch" "$sweep" "$folder" "${sweep_flags[@]}")
array=${array%%;*} # JOB;CLUSTER
echo "array of $shards shards: job $array"

command=("$OPTIMUS" sweep merge "$folder/sweep.sqlite")
for ((i = 0; i < shards; ++i)); do command+=("$folder/shard-$i-of-$shards.sqlite"); done
# A merge whose shards failed would wait for ever.
merge=$(sbatch --parsable --dependency="afterok:$array" --kill-on-invalid-dep=yes \
  --job-name=optimus-merge --time=01:00:00 --output="$folder/merge-%j.txt" "${sbatch_options[@]}" \
  --wrap="exec $(printf '%q ' "${command[@]}")")
merge=${merge%%;*}
echo "merge into $folder/sweep.sqlite: job $merge"
