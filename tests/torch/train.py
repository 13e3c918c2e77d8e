"""Ten steps of a training that says when each begins and ends. `HOW` says what it steps with."""

import os

import torch
from torch.cuda import said

how = os.environ.get("HOW", "one")
if how == "spawned":
    # A launcher of its own, which sets nothing in the environment of its processes.
    import subprocess
    import sys

    environment = dict(os.environ, HOW="one")
    ranks = [subprocess.Popen([sys.executable, __file__], env=dict(environment, ME=str(me))) for me in range(4)]
    sys.exit(max(rank.wait() for rank in ranks))

if how == "warm-up that is gone":
    warm = torch.optim.SGD([1.0])
    torch.autograd.backward()
    warm.step()
    del warm
first = torch.optim.Adam([1.0] * 8)
if how == "warm-up":
    first.step()
critic = torch.optim.SGD([2.0]) if how == "critics" else None
second = torch.optim.SGD([2.0] * 8) if how in ("two", "idle", "now and then") else None
scaler = None
if how == "scaler":
    from torch.amp import GradScaler

    scaler = GradScaler()
done = 0
for step in range(10):
    said("begin %d" % step)
    if how == "groups":
        torch.autograd.backward()
        for group in range(4):
            first.param_groups[0]["params"] = [float(group)]
            first.step()
    elif how == "parts":
        torch.autograd.backward()
        for part in range(4):
            first.step()
    elif how == "critics":
        for _ in range(5):
            torch.autograd.backward()
            critic.step()
        torch.autograd.backward()
        first.step()
    elif how == "own scaler":
        torch.autograd.backward()
        if step not in (0, 1, 5):
            first.step()
    elif how.startswith("warm-up"):
        torch.autograd.backward()
        first.step()
    elif scaler is not None:
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
