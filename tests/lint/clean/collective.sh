#!/bin/sh
# One task for each GPU, and nothing that starts others.
set -eu
mpirun -np 16 -N 8 --bind-to none -x NCCL_DEBUG=INFO /opt/nccl-tests/build/all_reduce_perf -b 8 -e 16G -f 2 -g 1
