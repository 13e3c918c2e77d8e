"""Runs one collective of torch.distributed over a sweep of sizes, under torchrun, and prints the table of nccl-tests.

Sizes, counts, bandwidths and columns are those of nccl-tests. Results are checked element by element: each rank's data is
a known pattern, so that every rank can compute what must come out.
"""

import argparse
import os
import socket
import sys
import time

import torch
import torch.distributed as dist

DTYPES = {
    "int8": torch.int8,
    "uint8": torch.uint8,
    "int32": torch.int32,
    "int64": torch.int64,
    "half": torch.float16,
    "bfloat16": torch.bfloat16,
    "float": torch.float32,
    "double": torch.float64,
}
# Whole numbers up to here are exact.
EXACT = {torch.float16: 1 << 11, torch.bfloat16: 1 << 8, torch.float32: 1 << 24, torch.float64: 1 << 53}
# Powers of two up to here are exact, and so are products of them.
MOST_DOUBLINGS = {torch.float16: 14, torch.bfloat16: 100, torch.float32: 100, torch.float64: 1000}
REDUCTIONS = {
    "sum": dist.ReduceOp.SUM,
    "prod": dist.ReduceOp.PRODUCT,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "avg": dist.ReduceOp.AVG,
}
# Operations that reduce, those with a root, and those whose count is that of one rank's part.
REDUCING = ("all_reduce", "reduce_scatter", "reduce")
ROOTED = ("broadcast", "reduce", "gather", "scatter")
PARTED = ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter")
# PyTorch has each of these in one placement only; the others have both.
IN_PLACE_ONLY = ("all_reduce", "broadcast", "reduce")
OUT_OF_PLACE_ONLY = ("alltoall", "gather", "scatter", "sendrecv")
OPERATIONS = IN_PLACE_ONLY + ("all_gather", "reduce_scatter") + OUT_OF_PLACE_ONLY

# The data repeats after so many elements: a prime, so that a part that came to a wrong place is seen.
PERIOD = 65521
# From one rank's data to the next.
SHIFT = 7919
# Filled and checked at once.
BLOCK = PERIOD * 256


def arguments():
    parser = argparse.ArgumentParser(prog="torch_collective.py", allow_abbrev=False)
    parser.add_argument("operation", choices=OPERATIONS)
    parser.add_argument("-b", "--minbytes", type=int, required=True)
    parser.add_argument("-e", "--maxbytes", type=int, required=True)
    parser.add_argument("-f", "--stepfactor", type=int)
    parser.add_argument("-i", "--stepbytes", type=int)
    parser.add_argument("-n", "--iters", type=int, default=20)
    parser.add_argument("-w", "--warmup_iters", type=int, default=5)
    parser.add_argument("-d", "--datatype", choices=DTYPES, default="float")
    parser.add_argument("-o", "--op", choices=REDUCTIONS, default="sum")
    parser.add_argument("-r", "--root", type=int, default=0)
    parser.add_argument("-c", "--check", type=int, choices=(0, 1), default=1)
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    given = parser.parse_args()
    if (given.stepfactor is None) == (given.stepbytes is None):
        parser.error("one of -f and -i is needed")
    if given.minbytes < 1 or given.maxbytes < given.minbytes or given.iters < 1 or given.warmup_iters < 0:
        parser.error("needs 1 <= -b <= -e, -n of 1 or more, -w of 0 or more")
    if (given.stepfactor or 2) < 2 or (given.stepbytes or 1) < 1:
        parser.error("needs -f of 2 or more, -i of 1 or more")
    return given


def sizes_of(given):
    size, sizes = given.minbytes, []
    while size <= given.maxbytes:
        sizes.append(size)
        size = size * given.stepfactor if given.stepfactor else size + given.stepbytes
    return sizes


def scattered(limit, salt):
    """PERIOD whole numbers below `limit`, the same on every rank."""
    index = torch.arange(PERIOD, dtype=torch.int64) + 1
    mixed = (index * 2654435761 + salt) % 4294967291
    return (mixed * 40503 // 65536) % limit


class Pattern:
    """What each rank sends, and what must come out, as one period of numbers."""

    def __init__(self, dtype, reduction, ranks):
        self.dtype, self.ranks = dtype, ranks
        self.reduction = reduction
        self.is_float = dtype.is_floating_point
        self.base = self.cast(self.numbers())
        # Of a mean: which rank alone has a number there, so that it is rounded no more often than divided.
        self.owner = scattered(ranks, 2) if reduction == "avg" else None

    def numbers(self):
        limit = EXACT.get(self.dtype)
        if not self.is_float:
            # Sums and products wrap around alike in any order.
            bits = torch.iinfo(self.dtype).bits
            wide = scattered(1 << min(bits, 31), 1)
            return wide | 1 if self.reduction == "prod" else wide
        if self.reduction == "avg":
            return scattered(64, 1) + 64
        if self.reduction == "sum":
            return self.exact_sums(limit)
        if self.reduction == "prod":
            return self.exact_products()
        return scattered(min(limit, 1 << 20), 1) - min(limit, 1 << 20) // 2

    def exact_sums(self, limit):
        """Numbers whose sum over all ranks is exact in any order: small ones, or few that are not 0."""
        for most in (127, 31, 7, 1):
            numbers = scattered(2 * most + 1, 1) - most
            if self.over_ranks(numbers.abs(), torch.add).max() <= limit:
                return numbers
        part = 2
        while True:
            numbers = torch.where(scattered(part, 2) == 0, scattered(2, 1) * 2 - 1, torch.zeros(1, dtype=torch.int64))
            if self.over_ranks(numbers.abs(), torch.add).max() <= limit:
                return numbers
            part *= 2

    def exact_products(self):
        part = 3
        while True:
            doubled = (scattered(part, 2) == 0).to(torch.int64)
            if self.over_ranks(doubled, torch.add).max() <= MOST_DOUBLINGS[self.dtype]:
                return (scattered(2, 1) * 2 - 1) * (1 + doubled)
            part *= 2

    def cast(self, numbers):
        """As the type holds them: whole numbers wrap around."""
        return numbers.to(self.dtype)

    def of_rank(self, rank):
        if self.owner is not None:
            return torch.where(self.owner == rank, self.base, torch.zeros_like(self.base))
        return torch.roll(self.base, -(rank * SHIFT) % PERIOD)

    def over_ranks(self, base, combine):
        total = base.clone()
        for rank in range(1, self.ranks):
            total = combine(total, torch.roll(base, -(rank * SHIFT) % PERIOD))
        return total

    def reduced(self):
        """What a reduction over all ranks gives."""
        if self.reduction == "avg":
            return self.base.double() / self.ranks
        combine = {"sum": torch.add, "prod": torch.mul, "min": torch.minimum, "max": torch.maximum}[self.reduction]
        wide = self.base.double() if self.is_float else self.base.to(torch.int64)
        return self.cast(self.over_ranks(wide, combine))

    def tolerance(self):
        """A mean is rounded, as a part of itself; nothing else is."""
        return 4 * torch.finfo(self.dtype).eps if self.reduction == "avg" else None


class Repeated:
    """A period of numbers on the device, repeated for a buffer of any length."""

    def __init__(self, period, device):
        self.block = period.to(device).repeat(BLOCK // PERIOD)

    def at(self, start, length):
        """The numbers from `start` on, in blocks, with their place in the buffer."""
        done = 0
        while done < length:
            first = (start + done) % PERIOD
            count = min(length - done, BLOCK - first)
            yield done, self.block[first : first + count]
            done += count

    def fill(self, buffer, start=0):
        for at, block in self.at(start, buffer.numel()):
            buffer[at : at + block.numel()].copy_(block)

    def spoil(self, buffer, start=0):
        """Everything that must not come out."""
        for at, block in self.at(start, buffer.numel()):
            other = block + 1
            if block.is_floating_point():
                # Large numbers of a short type have no neighbour at a distance of 1.
                other = torch.where(block == 0, torch.ones_like(block), -block)
            buffer[at : at + block.numel()].copy_(other)

    def wrong(self, buffer, start=0, tolerance=None):
        wrong = 0
        for at, block in self.at(start, buffer.numel()):
            got = buffer[at : at + block.numel()]
            if tolerance is None:
                differs = got != block
            else:
                # Written so that NaN is wrong.
                differs = ~((got.double() - block.double()).abs() <= tolerance * block.double().abs())
            wrong += int(differs.sum().item())
        return wrong


class Collective:
    """The operation on one rank: its buffers, its data, its result."""

    def __init__(self, given, rank, ranks, device):
        self.given, self.rank, self.ranks, self.device = given, rank, ranks, device
        self.name = given.operation
        self.dtype = DTYPES[given.datatype]
        self.element = torch.empty(0, dtype=self.dtype).element_size()
        self.reduction = given.op if self.name in REDUCING else None
        pattern = Pattern(self.dtype, self.reduction, ranks)
        self.tolerance = pattern.tolerance()
        repeated = lambda period: Repeated(period, device)
        if self.name == "sendrecv":
            self.sent, self.result = repeated(pattern.of_rank(rank)), repeated(pattern.of_rank(rank - 1 if rank else ranks - 1))
        elif self.reduction:
            self.sent, self.result = repeated(pattern.of_rank(rank)), repeated(pattern.reduced())
        else:
            # The data of rank r begins r shifts further on in the same numbers.
            self.sent = self.result = repeated(pattern.base)
        most = self.count(given.maxbytes)
        sent, received = self.lengths(most)
        self.send = torch.empty(max(sent, 1), dtype=self.dtype, device=device)
        self.receive = torch.empty(max(received, 1), dtype=self.dtype, device=device)

    def count(self, size):
        """Elements as nccl-tests counts them: of one rank, in units of 16 bytes, where each has a part."""
        elements = size // self.element
        if self.name not in PARTED:
            return elements
        each = elements // self.ranks
        unit = max(1, 16 // self.element)
        return each // unit * unit

    def size(self, count):
        return count * self.element * (self.ranks if self.name in PARTED else 1)

    def lengths(self, count):
        """Of the buffers that the operation sends from and receives into."""
        all_parts = count * self.ranks
        return {
            "all_gather": (count, all_parts),
            "reduce_scatter": (all_parts, count),
            "alltoall": (all_parts, all_parts),
            "gather": (count, all_parts if self.is_root() else 0),
            "scatter": (all_parts if self.is_root() else 0, count),
            "sendrecv": (count, count),
        }.get(self.name, (count, 0))

    def is_root(self):
        return self.rank == self.given.root

    def buffers(self, count, in_place):
        sent, received = self.lengths(count)
        send, receive = self.send[:sent], self.receive[:received]
        if in_place and self.name == "all_gather":
            send = receive[self.rank * count : (self.rank + 1) * count]
        if in_place and self.name == "reduce_scatter":
            receive = send[self.rank * count : (self.rank + 1) * count]
        return send, receive

    def prepare(self, count, in_place):
        """The data of this rank, and a result that is wrong wherever nothing comes."""
        send, receive = self.buffers(count, in_place)
        if self.name not in IN_PLACE_ONLY and receive.numel():
            self.spoil(receive, count)
        if self.name == "broadcast" and not self.is_root():
            self.result.spoil(send, self.given.root * SHIFT)
        elif self.reduction or self.name == "sendrecv":
            self.sent.fill(send)
        elif self.name in ("alltoall", "scatter"):
            for part in range(self.ranks if send.numel() else 0):
                self.sent.fill(send[part * count : (part + 1) * count], self.start(self.rank, part))
        else:
            self.sent.fill(send, self.rank * SHIFT)

    def start(self, sender, receiver):
        """Where the numbers begin that one rank sends to another: elsewhere for each pair, and each direction."""
        return (sender * self.ranks + receiver) * SHIFT

    def parts(self, receive, count):
        """Each part of the result, and where its numbers begin."""
        root, rank = self.given.root, self.rank
        if self.name in ("all_gather", "gather", "alltoall"):
            for part in range(self.ranks if receive.numel() else 0):
                start = self.start(part, rank) if self.name == "alltoall" else part * SHIFT
                yield receive[part * count : (part + 1) * count], start
        elif self.name == "scatter":
            yield receive, self.start(root, rank)
        elif self.name == "broadcast":
            yield receive, root * SHIFT
        elif self.name == "reduce_scatter":
            yield receive, rank * count
        elif self.name != "reduce" or self.is_root():
            yield receive, 0

    def spoil(self, receive, count):
        for part, start in self.parts(receive, count):
            self.result.spoil(part, start)

    def wrong(self, count, in_place):
        send, receive = self.buffers(count, in_place)
        result = send if self.name in IN_PLACE_ONLY else receive
        return sum(self.result.wrong(part, start, self.tolerance) for part, start in self.parts(result, count))

    def run(self, count, in_place):
        """One operation; on a GPU it is queued."""
        send, receive = self.buffers(count, in_place)
        root = self.given.root
        if self.name == "all_reduce":
            dist.all_reduce(send, REDUCTIONS[self.reduction])
        elif self.name == "reduce":
            dist.reduce(send, root, REDUCTIONS[self.reduction])
        elif self.name == "broadcast":
            dist.broadcast(send, root)
        elif self.name == "all_gather":
            dist.all_gather_into_tensor(receive, send)
        elif self.name == "reduce_scatter":
            dist.reduce_scatter_tensor(receive, send, REDUCTIONS[self.reduction])
        elif self.name == "alltoall":
            dist.all_to_all_single(receive, send)
        elif self.name == "gather":
            dist.gather(send, list(receive.chunk(self.ranks)) if self.is_root() else None, root)
        elif self.name == "scatter":
            dist.scatter(receive, list(send.chunk(self.ranks)) if self.is_root() else None, root)
        else:
            ahead, behind = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
            both = [dist.P2POp(dist.isend, send, ahead), dist.P2POp(dist.irecv, receive, behind)]
            for work in dist.batch_isend_irecv(both):
                work.wait()

    def finish(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def mean(self, number):
        return self.over_ranks(number) / self.ranks

    def over_ranks(self, number):
        total = torch.tensor([float(number)], dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return total.item()

    def bandwidths(self, size, us):
        """Of the operation, and of the bus."""
        algorithm = size / (us * 1e3) if us > 0 else 0.0
        others = (self.ranks - 1) / self.ranks
        factor = {"all_reduce": 2 * others, "broadcast": 1.0, "reduce": 1.0, "sendrecv": 1.0}.get(self.name, others)
        return algorithm, algorithm * factor

    def measure(self, count, in_place):
        """Microseconds of one operation, the mean over ranks, and how many elements came out wrong on all of them."""
        self.prepare(count, in_place)
        self.run(count, in_place)
        self.finish()
        # All ranks begin together.
        self.over_ranks(0)
        begin = time.perf_counter()
        for _ in range(self.given.iters):
            self.run(count, in_place)
        self.finish()
        us = self.mean((time.perf_counter() - begin) * 1e6 / self.given.iters)
        if not self.given.check:
            return us, None
        self.prepare(count, in_place)
        self.run(count, in_place)
        self.finish()
        return us, int(self.over_ranks(self.wrong(count, in_place)))


def fitted(value, width):
    """Two decimals, fewer where they do not fit."""
    for places in (2, 1, 0):
        text = "%.*f" % (places, value)
        if len(text) <= width:
            return text
    return "%.1e" % value


def cells(collective, size, measured):
    if measured is None:
        return "  %7s  %6s  %6s  %6s" % ("N/A", "N/A", "N/A", "N/A")
    us, wrong = measured
    algbw, busbw = collective.bandwidths(size, us)
    shown = "N/A" if wrong is None else "%g" % wrong
    return "  %7s  %6s  %6s  %6s" % (fitted(us, 7), fitted(algbw, 6), fitted(busbw, 6), shown)


def describe_rank(rank, local, device):
    """The line of a rank under `Using devices`."""
    bus, name = "cpu", "CPU"
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        bus, name = "0000:%02x:00" % getattr(properties, "pci_bus_id", 0), properties.name
    host = socket.gethostname()
    return "#  Rank %2d Group  0 Pid %6d on %10s device %2d [%s] %s" % (rank, os.getpid(), host, local, bus, name)


def head(given, ranks_lines):
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if given.backend == "nccl" else "none"
    step = "%d(factor)" % given.stepfactor if given.stepfactor else "%d(bytes)" % given.stepbytes
    return [
        "# torch-collective PyTorch %s NCCL %s backend %s" % (torch.__version__, nccl, given.backend),
        "# Collective test starting: %s_perf" % given.operation,
        "# nThread 1 nGpus 1 minBytes %d maxBytes %d step: %s warmup iters: %d iters: %d agg iters: 1 validation: %d graph: 0"
        % (given.minbytes, given.maxbytes, step, given.warmup_iters, given.iters, given.check),
        "#",
        "# Using devices",
        *ranks_lines,
        "#",
        "#                                                              out-of-place                       in-place          ",
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong ",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         ",
    ]


def main():
    given = arguments()
    rank, ranks, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    if given.root >= ranks or (given.operation == "sendrecv" and ranks < 2):
        sys.exit("torch_collective.py: %s with root %d does not work on %d ranks" % (given.operation, given.root, ranks))
    if given.op == "avg" and given.operation in REDUCING and not DTYPES[given.datatype].is_floating_point:
        sys.exit("torch_collective.py: avg needs a type of floating point, not %s" % given.datatype)
    device = torch.device("cpu")
    if given.backend == "nccl":
        torch.cuda.set_device(local)
        device = torch.device("cuda", local)
    dist.init_process_group(given.backend)
    collective = Collective(given, rank, ranks, device)
    lines = [None] * ranks
    dist.all_gather_object(lines, describe_rank(rank, local, device))

    def show(*text):
        if rank == 0:
            print(*text, sep="\n", flush=True)

    show(*head(given, lines))
    # A process group connects its ranks at the first operation.
    in_place = given.operation in IN_PLACE_ONLY
    size = given.minbytes
    while size <= given.maxbytes and given.warmup_iters:
        for _ in range(given.warmup_iters):
            collective.run(collective.count(size), in_place)
        collective.finish()
        size *= 2
    total_wrong, rates = 0, []
    reduction = collective.reduction or "none"
    root = given.root if given.operation in ROOTED else -1
    for asked in sizes_of(given):
        count = collective.count(asked)
        size = collective.size(count)
        outside = None if given.operation in IN_PLACE_ONLY else collective.measure(count, False)
        inside = None if given.operation in OUT_OF_PLACE_ONLY else collective.measure(count, True)
        for measured in (outside, inside):
            if measured is not None:
                rates.append(collective.bandwidths(size, measured[0])[1])
                total_wrong += measured[1] or 0
        show(
            "%12d  %12d  %8s  %6s  %6d" % (size, count, given.datatype, reduction, root)
            + cells(collective, size, outside)
            + cells(collective, size, inside)
        )
    show(
        "# Out of bounds values : %d %s" % (total_wrong, "FAILED" if total_wrong else "OK"),
        "# Avg bus bandwidth    : %g " % (sum(rates) / max(1, len(rates))),
        "#",
        "# Collective test concluded: %s_perf" % given.operation,
        "#",
    )
    dist.destroy_process_group()
    sys.exit(1 if total_wrong else 0)


if __name__ == "__main__":
    main()
