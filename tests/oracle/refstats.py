#!/usr/bin/env python3
"""Independent reference of the main summary reports, written from the PUBLISHED
column definitions, not from vendor code.

  refstats.py TRACE.sqlite REPORT [--csv FILE]

REPORT: cuda_api_sum cuda_gpu_kern_sum[:base|:mangled] cuda_gpu_mem_time_sum
        cuda_gpu_mem_size_sum osrt_sum nvtx_sum mpi_event_sum cuda_kern_exec_sum
        nvtx_gpu_proj_trace nvtx_gpu_proj_sum nvtx_kern_sum
Lines marked ASSUME are choices where the published text says nothing.
"""
import argparse, bisect, re, signal, sqlite3, sys

import numpy as np
import pandas as pd

LABELS = {"ENUM_CUDA_MEMCPY_OPER": (
    "Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host", "Array-to-Array", "Array-to-Device", "Device-to-Array",
    "Device-to-Device", "Host-to-Host", "Peer-to-Peer", "Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device")}
GPU_TABLES = ("KERNEL", "MEMCPY", "MEMSET")


class Skip(Exception):
    pass


class Trace:
    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.tables = {n for (n,) in self.db.execute("SELECT name FROM sqlite_master WHERE type='table'")}

    def read(self, table, cols="*"):
        if table not in self.tables:
            return None
        return pd.read_sql_query(f"SELECT {cols} FROM {table}", self.db)

    def need(self, *a):
        df = self.read(*a)
        if df is None or df.empty:
            raise Skip(f"no data in {a[0]}")
        return df

    def strings(self):
        return self.need("StringIds").set_index("id")["value"]

    def names(self, ids):
        return ids.map(self.strings())

    def enum(self, table):
        if table not in self.tables and table in LABELS:      # exports before schema 3 have no ENUM_* tables
            return pd.Series(dict(enumerate(LABELS[table])))
        return self.need(table).set_index("id")["label"]


def api_name(s):            # published outputs drop "_v" + exactly four digits, and keep "_v10000"
    return s.str.replace(r"_v\d{4}$", "", regex=True)


def stats(df, by, val, pre="", total="Total Time"):
    g = df.groupby(by, sort=False, dropna=False)[val]
    r = pd.DataFrame({total: g.sum(), "n": g.count(), pre + "Avg": g.mean(), pre + "Med": g.median(),
                      pre + "Min": g.min(), pre + "Max": g.max(), pre + "StdDev": g.std(ddof=1).fillna(0.0)}).reset_index()
    return r


def summary(df, by, count, rename, round1=True):
    r = stats(df, by, "dur")
    r = r.sort_values("Total Time", ascending=False, kind="stable")       # ASSUME: ties keep first-seen order
    r.insert(0, "Time (%)", (100 * r["Total Time"] / r["Total Time"].sum()).round(1))
    r = r.rename(columns={"n": count, "Total Time": "Total Time (ns)", **{c: c + " (ns)" for c in ("Avg", "Med", "Min", "Max", "StdDev")}, **rename})
    for c in ("Avg (ns)", "Med (ns)", "StdDev (ns)"):
        r[c] = r[c].round(1)
    head = ["Time (%)", "Total Time (ns)", count, "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)"]
    return r[head + [c for c in r.columns if c not in head]]


def cuda_api_sum(t, _):
    d = t.need("CUPTI_ACTIVITY_KIND_RUNTIME", "start, end, nameId")
    d["dur"] = d.end - d.start
    d["Name"] = api_name(t.names(d.nameId))
    return summary(d, ["Name"], "Num Calls", {})


def kernels(t, arg, extra=""):
    col = {"base": "shortName", "mangled": "mangledName"}.get(arg, "demangledName")
    d = t.need("CUPTI_ACTIVITY_KIND_KERNEL", f"start, end, {col} AS nm, demangledName{extra}")
    d["Name"] = t.names(d.nm.fillna(d.demangledName))
    d["dur"] = d.end - d.start
    return d


def cuda_gpu_kern_sum(t, arg):
    return summary(kernels(t, arg), ["Name"], "Instances", {})


def memops(t):
    parts = []
    c = t.read("CUPTI_ACTIVITY_KIND_MEMCPY", "start, end, bytes, copyKind")
    if c is not None and len(c):
        c["Operation"] = "[CUDA memcpy " + c.copyKind.map(t.enum("ENUM_CUDA_MEMCPY_OPER")) + "]"
        parts.append(c)
    m = t.read("CUPTI_ACTIVITY_KIND_MEMSET", "start, end, bytes")
    if m is not None and len(m):
        m["Operation"] = "[CUDA memset]"
        parts.append(m)
    if not parts:
        raise Skip("no GPU memory operations")
    d = pd.concat(parts); d["dur"] = d.end - d.start
    return d


def cuda_gpu_mem_time_sum(t, _):
    return summary(memops(t), ["Operation"], "Count", {})


def cuda_gpu_mem_size_sum(t, _):
    r = stats(memops(t), ["Operation"], "bytes", total="Total").sort_values("Total", ascending=False, kind="stable")
    for c in ("Total", "Avg", "Med", "Min", "Max", "StdDev"):
        r[c] = (r[c] / 1e6).round(3)                                       # MB is 10^6 bytes, three decimals
    r = r.rename(columns={"n": "Count", **{c: c + " (MB)" for c in ("Total", "Avg", "Med", "Min", "Max", "StdDev")}})
    return r[["Total (MB)", "Count", "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)", "StdDev (MB)", "Operation"]]


def osrt_sum(t, _):
    d = t.need("OSRT_API", "start, end, nameId, eventClass")
    d = d[d.eventClass == 27]                                              # ASSUME: only completed calls count
    d["Name"] = t.names(d.nameId); d["dur"] = d.end - d.start
    return summary(d, ["Name"], "Num Calls", {})


def nvtx_ranges(t):
    d = t.need("NVTX_EVENTS", "rowid AS RangeId, start, end, eventType, text, textId, globalTid, endGlobalTid, domainId")
    dom = d[d.eventType == 75].set_index("domainId")["text"].to_dict()
    d = d[d.eventType.isin((59, 60)) & d.end.notna()].copy()               # ASSUME: unfinished ranges are left out
    d["end"] = d.end.astype(np.int64)
    d["Name"] = d.text.where(d.text.notna(), t.names(d.textId))
    d["Range"] = d.domainId.map(lambda i: dom.get(i, "")) + ":" + d.Name   # default domain prints as ":name"
    d["Style"] = d.eventType.map({59: "PushPop", 60: "StartEnd"})
    return d


def nvtx_sum(t, _):
    d = nvtx_ranges(t); d["dur"] = d.end - d.start
    return summary(d, ["Style", "Range"], "Instances", {})


def mpi_event_sum(t, _):
    parts = [p.assign(Source=src) for tab, src in (("MPI_P2P_EVENTS", "p2p"), ("MPI_COLLECTIVES_EVENTS", "collectives"),
             ("MPI_START_WAIT_EVENTS", "start_wait"), ("MPI_OTHER_EVENTS", "other"))                # ASSUME: labels of Source
             if (p := t.read(tab, "start, end, textId")) is not None and len(p)]
    if not parts:
        raise Skip("no MPI data")
    d = pd.concat(parts); d = d[d.end.notna()]; d["dur"] = d.end - d.start; d["Name"] = t.names(d.textId)
    return summary(d, ["Source", "Name"], "Instances", {})


def launches(t, arg):
    k = kernels(t, arg, ", deviceId, correlationId, globalPid")
    a = t.need("CUPTI_ACTIVITY_KIND_RUNTIME", "start AS a0, end AS a1, globalTid, correlationId, nameId")
    a["globalPid"] = a.globalTid // 0x1000000 * 0x1000000
    return k.merge(a, on=["globalPid", "correlationId"])


def cuda_kern_exec_sum(t, arg):
    d = launches(t, arg)
    d["PID"] = d.globalTid // 0x1000000 % 0x1000000; d["TID"] = d.globalTid % 0x1000000
    d["API Name"] = api_name(t.names(d.nameId)); d["Kernel Name"] = d.Name
    d["T"] = np.maximum(d.a1, d.end) - d.a0; d["A"] = d.a1 - d.a0; d["K"] = d.dur
    d["Q"] = (d.start - d.a1).where(d.start > d.a1)
    by = ["PID", "TID", "deviceId", "API Name", "Kernel Name"]
    out = None
    for p in "TAQK":
        s = stats(d, by, p, pre=p, total=p + "sum").rename(columns={"n": "QCount" if p == "Q" else p + "n"})
        out = s if out is None else out.merge(s, on=by)
    out = out.sort_values("Tsum", ascending=False, kind="stable").rename(columns={"deviceId": "DevId", "Tn": "Count"})
    cols = [p + c for p in "TAQK" for c in ("Avg", "Med", "Min", "Max", "StdDev")]
    out[cols] = out[cols].astype(float).round(1)
    return out[["PID", "TID", "DevId", "Count", "QCount"] + cols + ["API Name", "Kernel Name"]].rename(columns={c: c + " (ns)" for c in cols})


def projected(t):
    """One row per NVTX range that launched GPU work, plus the operations it holds."""
    gpu = [g for k in GPU_TABLES if (g := t.read("CUPTI_ACTIVITY_KIND_" + k, "start, end, correlationId, globalPid")) is not None and len(g)]
    if not gpu:
        raise Skip("no CUDA GPU data")
    a = t.need("CUPTI_ACTIVITY_KIND_RUNTIME", "start AS a0, end AS a1, globalTid, correlationId")
    a["globalPid"] = a.globalTid // 0x1000000 * 0x1000000
    ops = pd.concat(gpu).merge(a, on=["globalPid", "correlationId"]).sort_values("a0", kind="stable")
    rng = nvtx_ranges(t)
    rng = rng[rng.endGlobalTid.isna() | (rng.endGlobalTid == rng.globalTid)]      # same thread only
    rows = []
    for tid, r in rng.groupby("globalTid"):
        o = ops[ops.globalTid == tid]
        a0, a1, g0, g1 = (o[c].to_numpy() for c in ("a0", "a1", "start", "end"))
        stack = []                                                                  # ASSUME: one stack over all domains
        r = r.sort_values(["start", "end"], ascending=[True, False], kind="stable")
        for x in r.itertuples():
            i, j = bisect.bisect_left(a0, x.start), bisect.bisect_right(a0, x.end)
            m = a1[i:j] <= x.end
            lvl, parent, path = None, None, None
            if x.eventType == 59:
                while stack and stack[-1][1] < x.end:
                    stack.pop()
                lvl, parent = len(stack), stack[-1][0] if stack else None
                path = ":" + ":".join(str(q) for q, _ in stack + [(x.RangeId, 0)])
                stack.append((x.RangeId, x.end))
            n = int(m.sum())
            rows.append((x.Range, g0[i:j][m].min() if n else None, (g1[i:j][m].max() - g0[i:j][m].min()) if n else None,
                         x.start, x.end - x.start, x.Style, tid // 0x1000000 % 0x1000000, tid % 0x1000000, n, lvl, 0, x.RangeId, parent, path))
    p = pd.DataFrame(rows, columns=["Name", "Projected Start", "Projected Duration", "Orig Start", "Orig Duration", "Style", "PID",
                                    "TID", "NumGPUOps", "Lvl", "NumChild", "RangeId", "ParentId", "RangeStack"])
    kids = p[p.NumGPUOps > 0].ParentId.dropna().value_counts()
    p["NumChild"] = p.RangeId.map(kids).fillna(0).astype(int)
    return p[p.NumGPUOps > 0], ops


def nvtx_gpu_proj_trace(t, _):
    return projected(t)[0].sort_values("Projected Start", kind="stable")            # ASSUME: order


def nvtx_gpu_proj_sum(t, _):
    p, _ = projected(t)
    s = stats(p, ["Name", "Style"], "Projected Duration", pre="Proj ", total="Total Proj Time")
    g = p.groupby(["Name", "Style"], sort=False)
    e = g.agg(**{"Total Range Time": ("Orig Duration", "sum"), "Total GPU Ops": ("NumGPUOps", "sum"), "Avg GPU Ops": ("NumGPUOps", "mean"),
                 "Avg Range Lvl": ("Lvl", "mean"), "Avg Num Child": ("NumChild", "mean")}).reset_index()
    r = s.merge(e, on=["Name", "Style"]).rename(columns={"Name": "Range", "n": "Range Instances"})
    r = r.sort_values("Total Proj Time", ascending=False, kind="stable")
    for c in ("Proj Avg", "Proj Med", "Proj StdDev", "Avg GPU Ops", "Avg Range Lvl", "Avg Num Child"):
        r[c] = r[c].astype(float).round(1)
    head = ["Range", "Style", "Total Proj Time", "Total Range Time", "Range Instances", "Proj Avg", "Proj Med", "Proj Min", "Proj Max",
            "Proj StdDev", "Total GPU Ops", "Avg GPU Ops", "Avg Range Lvl", "Avg Num Child"]
    return r[head].rename(columns={c: c + " (ns)" for c in head if c.startswith(("Total Proj", "Total Range", "Proj"))})


def nvtx_kern_sum(t, arg):
    d = launches(t, arg); rng = nvtx_ranges(t); rows = []
    for tid, r in rng[rng.endGlobalTid.isna() | (rng.endGlobalTid == rng.globalTid)].groupby("globalTid"):
        o = d[d.globalTid == tid].sort_values("a0", kind="stable"); a0, a1 = o.a0.to_numpy(), o.a1.to_numpy()
        nm, du = o.Name.to_numpy(), o.dur.to_numpy()
        for x in r.itertuples():
            i, j = bisect.bisect_left(a0, x.start), bisect.bisect_right(a0, x.end)
            for q in range(i, j):
                if a1[q] <= x.end:
                    rows.append((x.Range, x.Style, tid // 0x1000000 % 0x1000000, tid % 0x1000000, x.RangeId, nm[q], du[q]))
    f = pd.DataFrame(rows, columns=["NVTX Range", "Style", "PID", "TID", "rid", "Kernel Name", "dur"])
    by = ["NVTX Range", "Style", "PID", "TID", "Kernel Name"]
    s = stats(f, by, "dur").rename(columns={"n": "Kern Inst"})
    s["NVTX Inst"] = f.groupby(by, sort=False)["rid"].nunique().to_numpy()
    return s.sort_values("Total Time", ascending=False, kind="stable")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("trace"); ap.add_argument("report"); ap.add_argument("--csv")
    a = ap.parse_args()
    name, _, arg = a.report.partition(":")
    fn = globals().get(name)
    if not re.fullmatch(r"\w+_(sum|trace)", name) or fn is None:
        ap.error(f"unknown report {name}")
    try:
        df = fn(Trace(a.trace), arg)
    except Skip as e:
        print(f"SKIPPED: {e}", file=sys.stderr)
        return 0
    df.to_csv(a.csv or sys.stdout, index=False)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
