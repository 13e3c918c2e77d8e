"""A training of a real PyTorch with gloo: rank 2 does not come to the eighth collective. Whoever writes into a rank's pipe gets
its dump, as of PyTorch with NCCL."""

import os
import threading
import time

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d


def answer(rank):
    pipe = "%s%d.pipe" % (os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"], rank)
    os.mkfifo(pipe)
    with open(pipe) as asked:
        asked.read(1)
    with open("%s%d" % (os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"], rank), "wb") as dump:
        dump.write(c10d._dump_fr_trace())


dist.init_process_group("gloo")
rank = dist.get_rank()
threading.Thread(target=answer, args=(rank,), daemon=True).start()
for step in range(20):
    if rank == 2 and step == 7:
        time.sleep(3600)
    dist.all_reduce(torch.ones(1000))
    print("step %d" % step, flush=True)
