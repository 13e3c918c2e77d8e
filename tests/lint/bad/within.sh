#!/bin/sh
if [ "$1" == fast ]; then
    pushd /tmp
fi
CUDA_VISIBLE_DEVICES=0,1 python -m torch.distributed.launch --nproc_per_node=2 train.py
