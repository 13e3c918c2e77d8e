"""Multiplies matrices by PyTorch on all GPUs of a node at once, and prints the lines of gpu-burn.

One process for each GPU. Factors are small whole numbers, so that each product is exact before it is rounded to its type,
and must equal, element by element, the product that the host computed. Products are compared where they were computed, one of
each batch; the last is compared on the host.
"""

import argparse
import os
import subprocess
import sys
import threading
import time

# Floating point types, as suites name them; `tf32` is float with the fast products of tensor cores.
DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8")
NO_TORCH = 127
# A batch of products between two looks at the clock lasts about so long.
BATCH_S = 0.1
MOST_PRODUCTS = 64
# What a process reads once all of them are ready.
BEGIN = "begin\n"


def arguments():
    parser = argparse.ArgumentParser(prog="torch_burn.py", allow_abbrev=False)
    parser.add_argument("dtype", choices=DTYPES)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--gpus", type=int, required=True)
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--worker", action="store_true")
    # The number of seconds is the last word, as that of gpu-burn.
    parser.add_argument("seconds", type=int)
    return parser.parse_args()


def factors(torch, size):
    """Two matrices of -1, 0 and 1, the same on every GPU of every node, and their product by the host."""
    made = torch.Generator().manual_seed(20260101)
    one, other = (torch.randint(-1, 2, (size, size), generator=made, dtype=torch.int8) for _ in range(2))
    # Whole numbers up to `size` are exact in float.
    return one, other, torch.matmul(one.float(), other.float())


def multiplier(torch, dtype, device, one, other):
    """What multiplies the matrices in that type, and the type of the product."""
    types = {"fp64": torch.float64, "fp32": torch.float32, "tf32": torch.float32}
    types.update({"bf16": torch.bfloat16, "fp16": torch.float16})
    if dtype == "fp8":
        left = one.float().to(torch.float8_e4m3fn).to(device)
        # The second factor must be stored by columns.
        right = other.float().to(torch.float8_e4m3fn).t().contiguous().to(device).t()
        scale = torch.ones((), device=device)
        kind = torch.bfloat16
        return lambda: torch._scaled_mm(left, right, scale_a=scale, scale_b=scale, out_dtype=kind), kind
    left, right = one.to(device, types[dtype]), other.to(device, types[dtype])
    return lambda: torch.matmul(left, right), types[dtype]


def work(given):
    """Of one GPU: prints how many products, their rate and how many were wrong, whenever a batch is done."""
    import torch

    device = "cpu"
    if given.device == "cuda":
        device = "cuda:0"
        torch.cuda.set_device(0)
        torch.backends.cuda.matmul.allow_tf32 = given.dtype == "tf32"
        # Sums of parts are rounded in between otherwise, and need not be exact.
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    elif given.dtype in ("tf32", "fp8"):
        sys.exit("torch_burn.py: a CPU has no products in %s" % given.dtype)
    else:
        torch.set_num_threads(1)
    one, other, product = factors(torch, given.size)
    multiply, kind = multiplier(torch, given.dtype, device, one, other)
    expected = product.to(kind)
    expected_there = expected.to(device)

    def wait():
        if given.device == "cuda":
            torch.cuda.synchronize()

    multiply()
    wait()
    began = time.monotonic()
    multiply()
    wait()
    each = max(time.monotonic() - began, 1e-6)
    batch = max(1, min(MOST_PRODUCTS, int(BATCH_S / each)))
    operations = 2.0 * given.size**3
    print("ready", flush=True)
    # All GPUs of the node begin together: one that began sooner would end sooner, and look dead beside the others.
    if sys.stdin.readline() != BEGIN:
        return
    done = wrong = 0
    start = time.monotonic()
    while time.monotonic() - start < given.seconds:
        began = time.monotonic()
        for _ in range(batch):
            result = multiply()
        wait()
        took = max(time.monotonic() - began, 1e-9)
        done += batch
        wrong += int(not torch.equal(result, expected_there))
        print(done, operations * batch / took / 1e9, wrong, flush=True)
    wrong += int(not torch.equal(multiply().cpu(), expected))
    print(done + 1, 0, wrong, flush=True)
    print("end", flush=True)


class Gpu:
    """The process on one GPU, and what it has printed so far."""

    def __init__(self, number, visible):
        environment = dict(os.environ)
        environment["CUDA_VISIBLE_DEVICES"] = visible[number] if number < len(visible) else str(number)
        self.done, self.rate, self.wrong = 0, 0.0, 0
        self.is_ready = self.is_whole = False
        argv = [sys.executable, sys.argv[0], *sys.argv[1:-1], "--worker", sys.argv[-1]]
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(argv, env=environment, text=True, errors="replace", **streams)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words == ["ready"]:
                self.is_ready = True
            elif words == ["end"]:
                self.is_whole = True
            elif len(words) == 3:
                try:
                    done, rate, wrong = int(words[0]), float(words[1]), int(words[2])
                except ValueError:
                    # Libraries print remarks of their own.
                    continue
                self.rate = rate or self.rate
                self.done, self.wrong = done, wrong
        self.process.wait()

    def begin(self):
        try:
            self.process.stdin.write(BEGIN)
            self.process.stdin.flush()
        except OSError:
            # It has died since.
            pass

    def has_died(self):
        return not self.reader.is_alive() and not self.is_whole


def progress(gpus, percent):
    rates, errors = [], []
    for gpu in gpus:
        died = gpu.has_died()
        # Of small matrices on a CPU less than 1 is a rate, too.
        rates.append("%d (%.5g Gflop/s) " % (-1 if died else gpu.done, gpu.rate))
        warning = " (DIED!)" if died else " (WARNING!)" if gpu.wrong else ""
        errors.append("%d %s" % (gpu.wrong, warning))
    sys.stdout.write("\r%.1f%%  proc'd: %s  errors: %s  temps: --" % (percent, "- ".join(rates), "- ".join(errors)))
    sys.stdout.flush()


def main():
    given = arguments()
    try:
        import torch
    # OSError: one of its libraries is missing.
    except (ImportError, OSError) as error:
        # The beginning of this line is read: a program that is not there says nothing of its node.
        hint = "install it, or set `program` to a Python that has it"
        print("torch_burn.py: PyTorch is missing (%s): %s" % (error, hint), file=sys.stderr)
        return NO_TORCH
    if given.worker:
        work(given)
        return 0
    versions = (torch.__version__, torch.version.cuda)
    shape = (given.dtype, given.size, given.size)
    print("torch_burn.py: PyTorch %s, CUDA %s, %s, %d x %d" % (*versions, *shape), flush=True)
    # A job that has only some of the node's GPUs has them by these names.
    visible = [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]
    gpus = [Gpu(number, visible) for number in range(given.gpus)]
    # Their factors take a while; a GPU that never becomes ready finishes nothing.
    until = time.monotonic() + 300
    while time.monotonic() < until and not all(gpu.is_ready or gpu.has_died() for gpu in gpus):
        time.sleep(0.1)
    for gpu in gpus:
        if gpu.is_ready:
            gpu.begin()
    start, step = time.monotonic(), given.seconds / 200
    for line in range(1, 201):
        time.sleep(max(0.0, start + line * step - time.monotonic()))
        progress(gpus, min(100.0, line / 2))
    until = time.monotonic() + 60
    for gpu in gpus:
        gpu.reader.join(max(0.0, until - time.monotonic()))
    progress(gpus, 100.0)
    print("\n\nTested %d GPUs:" % len(gpus))
    for number, gpu in enumerate(gpus):
        gpu.process.kill()
        if gpu.is_whole:
            print("\tGPU %d: %s" % (number, "FAULTY" if gpu.wrong else "OK"))
    # A process that failed says why on stderr; where none computed anything, nothing was measured.
    return 0 if any(gpu.done for gpu in gpus) else 1


if __name__ == "__main__":
    sys.exit(main())
