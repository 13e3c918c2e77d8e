#!/bin/bash
# One process per GPU of this node, side by side, each bound to its GPU and with its own output.
# usage: bash gpus.sh GPUS PROGRAM [ARGUMENT...]
# Each writes gpuN.NODE.out and gpuN.NODE.err; the exit code is the worst of theirs.
# Each is an MPI program that runs alone: it sees no variable by which Slurm, PMI or another mpirun started this script.
# Open MPI 4 would take itself for a rank of the step, look for PMIx and abort.
set -u
gpus=$1
shift
node=${HARNESS_NODE:-${SLURMD_NODENAME:-${HOSTNAME:-unknown}}}
pids=()
unset "${!SLURM@}" "${!PMI@}" "${!PALS_@}" "${!OMPI_COMM_WORLD_@}" "${!OMPI_MCA_ess@}" "${!OMPI_MCA_orte@}" "${!PRTE_LAUNCHED@}"
unset OMPI_UNIVERSE_SIZE OMPI_APP_CTX_NUM_PROCS OMPI_FIRST_RANKS OMPI_NUM_APP_CTX OMPI_FILE_LOCATION OMPI_COMMAND OMPI_ARGV
# What was started ends with this script, also when it is asked to stop.
trap 'kill ${pids[@]+"${pids[@]}"} 2> /dev/null; wait; exit 143' TERM INT
for ((gpu = 0; gpu < gpus; gpu++)); do
  CUDA_VISIBLE_DEVICES=$gpu "$@" > "gpu$gpu.$node.out" 2> "gpu$gpu.$node.err" &
  pids+=("$!")
done
worst=0
for pid in ${pids[@]+"${pids[@]}"}; do
  wait "$pid"
  status=$?
  if ((status > worst)); then worst=$status; fi
done
exit "$worst"
