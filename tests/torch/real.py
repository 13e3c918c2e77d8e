"""Ten steps of a training by a real PyTorch on a CPU, where only the profiler's calls are stand-ins. `HOW` says what it steps with."""

import os
import sys

import torch

how = os.environ["HOW"]


def said(what):
    with open("said.%s" % os.environ.get("ME", "0"), "a") as file:
        file.write(what + "\n")


class Cudart:
    def cudaProfilerStart(self):
        said("start")
        return 0

    def cudaProfilerStop(self):
        said("stop")
        return 0


# To the hook alone: optimizers would ask the GPU more than that.
torch.cuda.is_available = lambda: sys._getframe(1).f_code.co_filename.endswith("sitecustomize.py")
torch.cuda.synchronize = lambda: None
torch.cuda.cudart = Cudart
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
data = torch.ones(2, 8)


def back(model=model):
    model(data).sum().backward()


if how == "warm-up that is gone":
    warm = torch.optim.SGD(model.parameters(), lr=0.1)
    back()
    warm.step()
    del warm
if how == "LBFGS":
    first = torch.optim.LBFGS(model.parameters(), lr=0.01)
elif how == "in backward":
    each = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def at_once(parameter):
        each[parameter].step()
        each[parameter].zero_grad()

    for parameter in each:
        parameter.register_post_accumulate_grad_hook(at_once)
else:
    first = torch.optim.AdamW(model.parameters(), lr=0.001)
if how == "warm-up":
    first.step()
if how == "critics":
    judge = torch.nn.Linear(8, 1)
    critic = torch.optim.Adam(judge.parameters())
if how == "two":
    second = torch.optim.SGD([torch.nn.Parameter(torch.ones(4))], lr=0.1)
if how == "schedule":
    schedule = torch.optim.lr_scheduler.StepLR(first, 2)
for step in range(10):
    said("begin %d" % step)
    if how == "critics":
        for _ in range(5):
            back(judge)
            critic.step()
    for _ in range(4 if how == "accumulation" else 1):
        if how == "recomputed":
            from torch.utils.checkpoint import checkpoint

            hidden = checkpoint(model[0], data.clone().requires_grad_(), use_reentrant=True)
            model[1](hidden).sum().backward()
        elif how != "LBFGS":
            back()
    if how == "LBFGS":

        def closure():
            first.zero_grad()
            loss = model(data).sum() ** 2
            loss.backward()
            return loss

        first.step(closure)
    elif how == "groups":
        # As DeepSpeed's third stage steps: each group of parameters is swapped in.
        for parameter in model.parameters():
            first.param_groups[0]["params"] = [parameter]
            first.step()
    elif how == "own scaler":
        if step not in (0, 1, 5):
            first.step()
    elif how != "in backward":
        first.step()
    if how == "two":
        second.step()
    if how == "schedule":
        schedule.step()
    said("ended %d" % step)
with open("done.0", "w") as file:
    file.write("10\n")
