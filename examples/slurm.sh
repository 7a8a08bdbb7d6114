#!/bin/bash
# A run on all nodes of a Slurm job: Ray is started on each for as long as the job lasts, and the run uses all of it.
#
#     sbatch examples/slurm.sh my-run.toml --out runs/mine
#
# What stands after the script's name goes to `forgetgauge run`. Submit the same again after a time limit, a lost node or
# scancel: it continues. Change the lines with SBATCH and the environment to what your cluster has.
#SBATCH --job-name=forgetgauge
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=08:00:00
#SBATCH --signal=B:INT@60

set -euo pipefail
source "${FORGETGAUGE_VENV:-$PWD/.venv}/bin/activate"  # the same on every node, on a disk that all of them see

# Whoever has this token can run code as you; without one, anybody who reaches a node could. It is new for every job.
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))')

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
ip=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address | awk '{print $1}')
address="$ip:$((20000 + SLURM_JOB_ID % 10000))"  # another port than another job's on the same node
each=(--num-cpus="${SLURM_CPUS_PER_TASK:-1}" --num-gpus="${SLURM_GPUS_ON_NODE:-0}" --disable-usage-stats --block)

srun --overlap --nodes=1 --ntasks=1 --nodelist="$head" \
  ray start --head --node-ip-address="$ip" --port="${address##*:}" --include-dashboard=false "${each[@]}" &
until ray status --address "$address" > /dev/null 2>&1; do sleep 1; done
if [ "$SLURM_NNODES" -gt 1 ]; then
  others=$((SLURM_NNODES - 1))
  srun --overlap --nodes="$others" --ntasks="$others" --exclude="$head" ray start --address="$address" "${each[@]}" &
fi
# Stacks are made for as many GPUs as there are when the run begins, so it waits for all nodes.
until [ "$(ray status --address "$address" 2> /dev/null | grep -c ' node_')" -ge "$SLURM_NNODES" ]; do sleep 2; done

# A minute before the end of its time Slurm interrupts this script: the run stops as after Ctrl-C, with all that is done.
(trap - INT; exec forgetgauge run "$@" --executor ray --address "$address" --quiet) &
run=$!
trap 'kill -INT $run' INT
code=0
wait $run || code=$?
while kill -0 $run 2> /dev/null; do wait $run || code=$?; done  # the trap ended the wait before the run ended
exit $code
