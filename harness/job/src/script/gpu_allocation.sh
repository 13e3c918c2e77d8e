#!/bin/bash
# Lets Slurm give steps of this job some of the node's GPUs, and lists those that each step can use.
# usage: bash gpu_allocation.sh PROGRAM OPTION LIMIT_S GPUS...
#   PROGRAM  srun
#   OPTION   how the cluster is asked for GPUs: `gres` (--gres=gpu:N) or `gpus-per-node`
#   LIMIT_S  of each step
#   GPUS     numbers of GPUs, one step for each
# Runs inside a job, on its node. Prints for each number `step N`, then `visible LIST` (CUDA_VISIBLE_DEVICES of the
# step) or `visible-unset`, and what `nvidia-smi -L` prints, then `status CODE` of srun, with its reason from stderr.
# `end COUNT` is the last line: how many steps there were. nvidia-smi takes no notice of CUDA_VISIBLE_DEVICES: it lists
# what the step can open.
# exit: 0 each step was tried, 2 usage or no job of Slurm, 127 PROGRAM is not installed here, 143 ended from outside.
set -u
LC_ALL=C

main() {
  if (($# < 4)) || [[ $2 != gres && $2 != gpus-per-node ]]; then
    echo "gpu_allocation.sh: wrong arguments: $*" >&2
    exit 2
  fi
  program=$1 option=$2 limit=$3
  shift 3
  for number in "$limit" "$@"; do
    if ! [[ $number =~ ^[1-9][0-9]*$ ]]; then
      echo "gpu_allocation.sh: not a whole number above zero: $number" >&2
      exit 2
    fi
  done
  job=${SLURM_JOB_ID:-} node=${SLURMD_NODENAME:-}
  if [[ -z $job || -z $node ]]; then
    echo "gpu_allocation.sh: this is no job of Slurm" >&2
    exit 2
  fi
  if ! command -v "$program" > /dev/null; then
    echo "gpu_allocation.sh: line $LINENO: exec: $program: not found" >&2
    exit 127
  fi
  trap stop TERM INT HUP
  forget_this_step
  for number; do
    try "$number"
  done
  echo "end $#"
}

# What this step was given is no request of the next one. A step without GPUs of its own must not inherit these.
forget_this_step() {
  local name
  for name in "${!SLURM_@}"; do
    case $name in
      SLURM_CONF | SLURM_CONF_SERVER | SLURM_JWT | SLURM_SACK_SOCKET) ;;
      *) unset "$name" ;;
    esac
  done
  unset CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL ROCR_VISIBLE_DEVICES ZE_AFFINITY_MASK
}

# It shares what the step of this script holds. The quotes are for the shell of the step.
# shellcheck disable=SC2016
try() {
  local gpus=$1 ask err=gpu_allocation.$node.$1.err code why=
  case $option in
    gres) ask=--gres=gpu:$gpus ;;
    *) ask=--gpus-per-node=$gpus ;;
  esac
  echo "step $gpus"
  timeout -k 5 "$limit" "$program" --jobid="$job" --overlap --mem=0 --nodes=1 --ntasks=1 --nodelist="$node" --mpi=none "$ask" \
    bash -c '
      if [[ -n ${CUDA_VISIBLE_DEVICES+set} ]]; then
        echo "visible $CUDA_VISIBLE_DEVICES"
      else
        echo visible-unset
      fi
      nvidia-smi -L' < /dev/null 2> "$err" &
  wait "$!"
  code=$?
  if ((code == 124)); then
    why="no step in $limit s"
  elif ((code)); then
    why=$(last_reason "$err")
  fi
  echo "status $code $why"
}

# The last line that is more than the exit code of a task.
last_reason() {
  local line last=
  while IFS= read -r line; do
    [[ -z $line || $line == *'Exited with exit code'* ]] || last=${line:0:300}
  done < "$1"
  echo "$last"
}

main "$@"
