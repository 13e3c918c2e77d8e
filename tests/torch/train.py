"""Ten steps of a training that says when each begins and ends. `HOW` says what it steps with."""

import os

import torch
from torch.cuda import said

how = os.environ.get("HOW", "one")
if how == "spawned":
    # A launcher of its own, which tells its processes nothing by their environment.
    import subprocess
    import sys

    environment = dict(os.environ, HOW="one")
    ranks = [subprocess.Popen([sys.executable, __file__], env=dict(environment, ME=str(me))) for me in range(4)]
    sys.exit(max(rank.wait() for rank in ranks))

first = torch.optim.Adam([1.0])
second = torch.optim.SGD([2.0]) if how in ("two", "idle", "now and then") else None
scaler = None
if how == "scaler":
    from torch.amp import GradScaler

    scaler = GradScaler()
done = 0
for step in range(10):
    said("begin %d" % step)
    if scaler is not None:
        scaler.step(first)
    else:
        assert first.step() == "stepped"
    if how == "two" or (how == "now and then" and step % 3 == 2):
        said("between")
        second.step()
    said("ended %d" % step)
    done += 1
with open("done.%s" % os.environ.get("ME", "0"), "w") as file:
    file.write("%d\n" % done)
