"""Trains a small model by DistributedDataParallel under torchrun, then compares the weights of all ranks.

Each rank has data of its own, fixed by a seed. Ranks apply the mean of their gradients, so that their weights are equal
after each step, bit by bit. Lines of steps are in the form of NeMo 2; the last line says whether the weights are equal.
"""

import argparse
import ctypes
import hashlib
import math
import os
import socket
import sys
import time

import torch
import torch.distributed as dist

SEED = 20260101
LEARNING_RATE = 1e-3


def arguments():
    parser = argparse.ArgumentParser(prog="torch_ddp.py", allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    given = parser.parse_args()
    if min(given.steps, given.batch, given.hidden, given.layers) < 1:
        parser.error("needs numbers of 1 or more")
    return given


class Block(torch.nn.Module):
    """A residual pair of linear layers."""

    def __init__(self, hidden):
        super().__init__()
        self.norm = torch.nn.LayerNorm(hidden)
        self.widen = torch.nn.Linear(hidden, 4 * hidden)
        self.narrow = torch.nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        return x + self.narrow(torch.nn.functional.gelu(self.widen(self.norm(x))))


def make_model(hidden, layers, device):
    """The same on every rank, before DistributedDataParallel sends that of rank 0 to all."""
    torch.manual_seed(SEED)
    blocks = [Block(hidden) for _ in range(layers)]
    return torch.nn.Sequential(*blocks, torch.nn.Linear(hidden, hidden)).to(device)


def batch_of(given, rank, step, device):
    """Samples that no other rank and no other step has, and what must come out of the model."""
    drawn = torch.Generator(device=device).manual_seed(SEED + 1_000_003 * (rank + 1) + step)
    samples = torch.randn(given.batch, given.hidden, generator=drawn, device=device)
    return samples, torch.tanh(samples)


def digest(model):
    """SHA-256 of all weights, bit by bit, by the host."""
    whole = hashlib.sha256()
    for name, weights in model.state_dict().items():
        host = weights.detach().cpu().contiguous()
        whole.update(name.encode())
        whole.update(ctypes.string_at(host.data_ptr(), host.numel() * host.element_size()))
    return whole.hexdigest()


def compare(reports):
    """What the line of the weights says of the digest, device and host of each rank, in the order of ranks."""
    ranks_of = {}
    for rank, (weights, _, _) in enumerate(reports):
        ranks_of.setdefault(weights, []).append(rank)
    if len(ranks_of) == 1:
        return "equal on %d ranks, sha256 %s" % (len(reports), reports[0][0])
    text = "%d versions on %d ranks" % (len(ranks_of), len(reports))
    fewest = min(ranks_of.values(), key=len)
    # Of two ranks that differ, either may be the wrong one.
    if len(ranks_of) == 2 and len(fewest) == 1 and len(reports) > 2:
        weights, device, host = reports[fewest[0]]
        text += ", rank %d alone differs, Device: %d, node: %s, sha256 %s" % (fewest[0], device, host, weights)
    return text


def refuse_nan(loss, rank, local):
    """Before gradients are shared, only the rank itself knows that its loss is not a number."""
    if math.isnan(loss):
        where = (rank, local, socket.gethostname())
        message = "Rank %d: found NaN in local forward loss calculation. Device: %d, node: %s" % where
        raise AssertionError(message)


def run_step(model, optimizer, samples, expected, device, rank, local):
    """One step; the loss of this rank."""
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
        predicted = model(samples)
    loss = torch.nn.functional.mse_loss(predicted.float(), expected)
    refuse_nan(loss.item(), rank, local)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def main():
    given = arguments()
    rank, ranks, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    device = torch.device("cpu")
    if given.backend == "nccl":
        torch.cuda.set_device(local)
        device = torch.device("cuda", local)
    else:
        torch.set_num_threads(1)
    dist.init_process_group(given.backend)
    bare = make_model(given.hidden, given.layers, device)
    model = torch.nn.parallel.DistributedDataParallel(bare, device_ids=[local] if device.type == "cuda" else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    if rank == 0:
        count = sum(weights.numel() for weights in model.parameters())
        print("torch_ddp.py: PyTorch %s, %s, %d weights" % (torch.__version__, given.backend, count), flush=True)
    begin = time.perf_counter()
    for step in range(given.steps):
        samples, expected = batch_of(given, rank, step, device)
        loss = run_step(model, optimizer, samples, expected, device, rank, local)
        # The mean over all ranks; it also waits for what the GPU was given.
        dist.all_reduce(loss)
        mean = loss.item() / ranks
        end = time.perf_counter()
        if rank == 0:
            print(
                "Training epoch 0, iteration %d/%d | lr: %g | global_batch_size: %d | global_step: %d"
                " | reduced_train_loss: %.6f | train_step_timing in s: %.6f | consumed_samples: %d"
                % (
                    step,
                    given.steps - 1,
                    LEARNING_RATE,
                    given.batch * ranks,
                    step,
                    mean,
                    end - begin,
                    given.batch * ranks * (step + 1),
                ),
                flush=True,
            )
        begin = end
    reports = [None] * ranks
    dist.all_gather_object(reports, (digest(bare), local, socket.gethostname()))
    if rank == 0:
        print("torch_ddp.py: weights after step %d: %s" % (given.steps, compare(reports)), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
