"""Three ranks of a real PyTorch on CPUs: what torch_collective.py expects is what numpy computes, and a wrong element is found.

Its argument is the folder of torch_collective.py. Each line that it prints is one operation and type that was tried.
"""

import os
import sys

import numpy
import torch
import torch.distributed as dist

sys.path.insert(0, sys.argv[1])
import torch_collective as tested

COUNT = 3000
COMBINE = {"sum": numpy.add, "prod": numpy.multiply, "min": numpy.minimum, "max": numpy.maximum}


def wide(tensor):
    """As numpy holds it: it has no bfloat16."""
    return tensor.float().numpy().copy() if tensor.dtype == torch.bfloat16 else tensor.numpy().copy()


def expected(name, reduction, parts, rank, root, before):
    """What must lie in the result of one rank, from what all ranks sent."""
    count = COUNT
    if reduction == "avg":
        total = sum(part.astype(numpy.float64) for part in parts) / len(parts)
    elif reduction:
        with numpy.errstate(over="ignore"):
            total = COMBINE[reduction].reduce(parts, dtype=parts[0].dtype)
    if name == "all_reduce" or (name == "reduce" and rank == root):
        return total
    if name == "reduce_scatter":
        return total[rank * count : (rank + 1) * count]
    if name == "broadcast":
        return parts[root]
    if name == "all_gather" or (name == "gather" and rank == root):
        return numpy.concatenate(parts)
    if name == "alltoall":
        return numpy.concatenate([part[rank * count : (rank + 1) * count] for part in parts])
    if name == "scatter":
        return parts[root][rank * count : (rank + 1) * count]
    if name == "sendrecv":
        return parts[(rank - 1) % len(parts)]
    return before


def result(collective, in_place):
    send, receive = collective.buffers(COUNT, in_place)
    return send if collective.name in tested.IN_PLACE_ONLY else receive


def total_wrong(collective, in_place):
    return int(collective.over_ranks(collective.wrong(COUNT, in_place)))


def check(name, dtype, reduction, in_place):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    words = [name, "-b", "8", "-e", str(COUNT * 8 * ranks), "-f", "2", "-d", dtype, "-o", reduction or "sum", "-r", "1"]
    sys.argv = ["torch_collective.py", *words, "--backend", "gloo"]
    collective = tested.Collective(tested.arguments(), rank, ranks, torch.device("cpu"))
    what = "%s %s %s %s" % (name, dtype, reduction, "in" if in_place else "out")

    # An operation that does nothing is wrong.
    collective.prepare(COUNT, in_place)
    assert total_wrong(collective, in_place) > COUNT // 4, what + ": nothing ran, and all is right"

    collective.prepare(COUNT, in_place)
    parts = [None] * ranks
    dist.all_gather_object(parts, wide(collective.buffers(COUNT, in_place)[0]))
    before = wide(result(collective, in_place))
    collective.run(COUNT, in_place)
    assert total_wrong(collective, in_place) == 0, what + ": right results are called wrong"
    own = wide(result(collective, in_place))
    wanted = expected(name, collective.reduction, parts, rank, 1, before)
    # Only the root has a result of these.
    if name not in ("reduce", "gather") or rank == 1:
        if reduction == "avg":
            numpy.testing.assert_allclose(own.astype(float), wanted, rtol=collective.tolerance, atol=0, err_msg=what)
        else:
            numpy.testing.assert_array_equal(own, wanted, err_msg=what)

    # What every rank sends to itself alone is no exchange.
    if name == "alltoall":
        collective.prepare(COUNT, in_place)
        send, receive = collective.buffers(COUNT, in_place)
        receive.copy_(send)
        assert total_wrong(collective, in_place) > COUNT, what + ": a copy of what was sent is right"
    # Without one rank's part a mean or a sum is wrong.
    if reduction in ("avg", "sum") and name == "all_reduce":
        collective.prepare(COUNT, in_place)
        if rank == 2:
            collective.buffers(COUNT, in_place)[0].zero_()
        collective.run(COUNT, in_place)
        assert total_wrong(collective, in_place) > COUNT // 4, what + ": a rank is missing"

    # One element of one rank, in turn the first, one in the middle and the last.
    for at in (0, COUNT // 2, -1):
        collective.prepare(COUNT, in_place)
        collective.run(COUNT, in_place)
        if rank == 1:
            buffer = result(collective, in_place)
            buffer[at] = 0 if buffer[at].item() else 7
        found = total_wrong(collective, in_place)
        assert found == 1, "%s: a wrong element at %d: %d found" % (what, at, found)
    if tested.DTYPES[dtype].is_floating_point:
        collective.prepare(COUNT, in_place)
        collective.run(COUNT, in_place)
        if rank == 1:
            result(collective, in_place)[7] = float("nan")
        assert total_wrong(collective, in_place) == 1, what + ": NaN is not found"
    if rank == 0:
        print(what, flush=True)


def main():
    dist.init_process_group("gloo")
    for name in tested.OPERATIONS:
        for dtype in tested.DTYPES:
            is_float = tested.DTYPES[dtype].is_floating_point
            for reduction in tested.REDUCTIONS if name in tested.REDUCING else [None]:
                if reduction == "avg" and not is_float:
                    continue
                if name not in tested.IN_PLACE_ONLY:
                    check(name, dtype, reduction, False)
                if name not in tested.OUT_OF_PLACE_ONLY:
                    check(name, dtype, reduction, True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
