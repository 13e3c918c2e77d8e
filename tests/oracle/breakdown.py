"""Ten numbers of an SQLite export whose GPUs and processes are taken for one timeline, as text.

Written from the description of these numbers alone, as a second opinion: lengths come from counting how many spans are
open between one edge and the next, and not from uniting them.
"""

import re
import sqlite3
import sys


def rows(db, table, columns):
    there = db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    return db.execute(f"SELECT {columns} FROM {table}").fetchall() if there else []


def covered(spans):
    edges = []
    for start, end in spans:
        if start is not None and end is not None and end > start:
            edges += [(start, 1), (end, -1)]
    edges.sort()
    length, is_open = 0, 0
    for (moment, step), (following, _) in zip(edges, edges[1:] + edges[-1:]):
        is_open += step
        if is_open:
            length += following - moment
    return length


def small(name):
    """Letters of ASCII alone, as patterns of the database have it."""
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in name)


def main(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    begin, stop = rows(db, "ANALYSIS_DETAILS", "startTime, stopTime")[0]
    session = stop - begin
    names = {number: small(text) for number, text in rows(db, "StringIds", "id, value") if text is not None}
    everything, talk, work = [], [], []
    for start, end, name in rows(db, "CUPTI_ACTIVITY_KIND_KERNEL", "start, end, demangledName"):
        everything.append((start, end))
        if name not in names:
            continue
        if "nccl" in names[name]:
            talk.append((start, end))
        elif not re.search("memcpy|memset|mem.copy", names[name], re.DOTALL):
            work.append((start, end))
    memory = []
    for table in ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"):
        memory += rows(db, table, "start, end")
    active = covered(everything + memory)

    def shared(one, two):
        return covered(one) + covered(two) - covered(one + two)

    rule = "-" * 60
    table = [
        [("Total Session Time", session), ("GPU Active (any work)", active), ("GPU Idle Time", session - active)],
        [
            ("Compute (FLOP-ish kernels)", covered(work)),
            ("Communication (NCCL kernels)", covered(talk)),
            ("Memory ops (memcpy/memset)", covered(memory)),
        ],
        [
            ("Compute \u2229 Comm overlap", shared(work, talk)),
            ("Compute \u2229 Mem overlap", shared(work, memory)),
            ("Comm \u2229 Mem overlap", shared(talk, memory)),
        ],
    ]
    lines = ["", "Distributed Training Metric".ljust(35) + " | " + "Duration (s)".rjust(15), rule]
    for part in table:
        lines += [name.ljust(35) + " | " + ("%.6f" % (ns / 1e9)).rjust(15) for name, ns in part] + [rule]
    if session > 0:
        lines.append("Overall GPU Utilization: %.2f%%" % (active / session * 100.0))
    sys.stdout.buffer.write(("\n".join(lines) + "\n").encode())


main(sys.argv[1])
