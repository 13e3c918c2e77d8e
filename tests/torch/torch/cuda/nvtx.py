def range_start(name):
    from . import said

    said("range " + name)
    return name


def range_end(name):
    from . import said

    said("end of range " + name)
