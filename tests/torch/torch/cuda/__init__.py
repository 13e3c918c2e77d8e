import os

from . import nvtx


def said(what):
    with open("said.%s" % os.environ.get("ME", "0"), "a") as file:
        file.write(what + "\n")


def is_available():
    return os.environ.get("BROKEN") != "no GPU"


def synchronize():
    said("synchronize")


class _Cudart:
    def cudaProfilerStart(self):
        said("start")
        if os.environ.get("BROKEN") == "start":
            return 36
        return 0

    def cudaProfilerStop(self):
        said("stop")
        if os.environ.get("BROKEN") == "stop":
            raise RuntimeError("the driver is gone")
        return 0


def cudart():
    if os.environ.get("BROKEN") == "cudart":
        raise OSError("no libcudart")
    return _Cudart()
