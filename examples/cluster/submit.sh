#!/bin/bash
# Runs a study in N shards, and merges them: examples/cluster/submit.sh STUDY.toml OUTPUT N
# With SLURM as a job array; without it, one shard after the other on this machine.
set -euo pipefail
study=$1 output=$2 shards=$3
here=$(dirname "$0")
mkdir -p "$output"
madplug run "$study" --prepare --output "$output/prepared" --quiet     # what components prepare is made once
if command -v sbatch > /dev/null; then
    array=$(sbatch --parsable --array="1-$shards" "$here/study.sbatch" "$study" "$output" "$shards")
    sbatch --dependency="afterany:$array" --wrap="madplug merge '$output'/shard-* --output '$output/merged' --quiet"
else
    for shard in $(seq "$shards"); do
        SLURM_ARRAY_TASK_ID=$shard bash "$here/study.sbatch" "$study" "$output" "$shards"
    done
    madplug merge "$output"/shard-* --output "$output/merged" --quiet
fi
