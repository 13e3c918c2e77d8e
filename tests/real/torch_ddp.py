"""Eight steps of torch_ddp.py on ranks that go wrong: a bit of the ranks in `WRONG` is changed after the last step, and from the
sixth on the data of rank `NAN` is not a number.

Its first argument is the folder of torch_ddp.py, the others are those of torch_ddp.py.
"""

import os
import sys

import torch

sys.path.insert(0, sys.argv.pop(1))
import torch_ddp as tested

rank = os.environ["RANK"]
right_step, right_batch = torch.optim.AdamW.step, tested.batch_of
done = 0


def step(optimizer, *given, **named):
    global done
    result = right_step(optimizer, *given, **named)
    done += 1
    if done == 8 and rank in os.environ["WRONG"].split(","):
        with torch.no_grad():
            # The last bit of one weight, another one on each rank.
            bits = optimizer.param_groups[0]["params"][2].view(-1).view(torch.int32)
            bits[int(rank)] ^= 1
    return result


def batch_of(given, at_rank, at_step, device):
    samples, expected = right_batch(given, at_rank, at_step, device)
    if at_step >= 5 and rank == os.environ["NAN"]:
        samples[0, 0] = float("nan")
    return samples, expected


torch.optim.AdamW.step, tested.batch_of = step, batch_of
sys.exit(tested.main())
