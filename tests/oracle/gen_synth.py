#!/usr/bin/env python3
"""Writes a synthetic trace in the published Nsight Systems export layout.

  gen_synth.py OUT.sqlite [--kernels N] [--devices D] [--streams S] [--rank R]
               [--seed X] [--nvtx] [--mpi] [--nic] [--efa] [--parquet]

Only tables and columns that the public schema reference lists are used. The
EFA part (GENERIC_EVENTS) is a GUESS at the layout.
--parquet also writes OUT_pqtdir/<table>.parquet (needs pyarrow).
"""
import argparse, json, pathlib, random, sqlite3

import numpy as np

ENUM = "(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)"
SCHEMA = {
    "StringIds": "(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
    "META_DATA_EXPORT": "(name TEXT NOT NULL, value TEXT)",
    "META_DATA_CAPTURE": "(name TEXT NOT NULL, value TEXT)",
    "ANALYSIS_DETAILS": "(globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL)",
    "TARGET_INFO_SESSION_START_TIME": "(utcEpochNs INTEGER, utcTime TEXT, localTime TEXT)",
    "TARGET_INFO_SYSTEM_ENV": "(globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, nameEnum INTEGER NOT NULL, value TEXT NOT NULL)",
    "TARGET_INFO_GPU": "(vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, smCount INTEGER, cuDevice INTEGER)",
    "PROCESSES": "(globalPid INTEGER, pid INTEGER, name TEXT)",
    "ThreadNames": "(nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER)",
    "ENUM_CUDA_MEMCPY_OPER": ENUM, "ENUM_CUDA_MEM_KIND": ENUM, "ENUM_CUPTI_SYNC_TYPE": ENUM, "ENUM_NSYS_EVENT_TYPE": ENUM,
    "CUPTI_ACTIVITY_KIND_RUNTIME": "(start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER)",
    "CUPTI_ACTIVITY_KIND_KERNEL": "(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER)",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, graphNodeId INTEGER, virtualAddress INTEGER)",
    "CUPTI_ACTIVITY_KIND_MEMSET": "(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER)",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "(start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL)",
    "NVTX_EVENTS": "(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT)",
    "MPI_P2P_EVENTS": "(start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER, commHandle INTEGER, tag INTEGER, remoteRank INTEGER, size INTEGER, requestHandle INTEGER)",
    "MPI_COLLECTIVES_EVENTS": "(start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, textId INTEGER, commHandle INTEGER, rootRank INTEGER, size INTEGER, recvSize INTEGER, requestHandle INTEGER)",
    "MPI_RANKS": "(globalTid INTEGER NOT NULL, rank INTEGER NOT NULL)",
    "TARGET_INFO_NIC_INFO": "(GUID INTEGER NOT NULL, stateName TEXT NOT NULL, nicId INTEGER NOT NULL, name TEXT NOT NULL, deviceId INTEGER NOT NULL, vendorId INTEGER NOT NULL, linkLayer INTEGER NOT NULL)",
    "NIC_ID_MAP": "(nicId INTEGER NOT NULL, globalId INTEGER NOT NULL)",
    "TARGET_INFO_NETWORK_METRICS": "(metricsListId INTEGER NOT NULL, metricsIdx INTEGER NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL, unit TEXT NOT NULL)",
    "NET_NIC_METRIC": "(start INTEGER NOT NULL, end INTEGER NOT NULL, globalId INTEGER NOT NULL, portId INTEGER NOT NULL, metricsListId INTEGER NOT NULL, metricsIdx INTEGER NOT NULL, value INTEGER NOT NULL)",
    "GENERIC_EVENT_SOURCES": "(sourceId INTEGER NOT NULL PRIMARY KEY, nameId INTEGER NOT NULL, timeSourceId INTEGER NOT NULL, sourceGroupId INTEGER NOT NULL, data TEXT)",
    "GENERIC_EVENT_TYPES": "(typeId INTEGER NOT NULL PRIMARY KEY, sourceId INTEGER NOT NULL, nameId INTEGER NOT NULL, data TEXT)",
    "GENERIC_EVENT_TYPE_FIELDS": "(typeId INTEGER NOT NULL, fieldIdx INTEGER NOT NULL, fieldNameId INTEGER NOT NULL, offset INTEGER NOT NULL, size INTEGER NOT NULL, type INTEGER NOT NULL)",
    "GENERIC_EVENTS": "(genericEventId INTEGER NOT NULL PRIMARY KEY, rawTimestamp INTEGER NOT NULL, timestamp INTEGER NOT NULL, typeId INTEGER NOT NULL, globalTid INTEGER, data TEXT)",
    "GENERIC_EVENT_DATA": "(genericEventId INTEGER NOT NULL, fieldIdx INTEGER NOT NULL, intVal INTEGER, uintVal INTEGER, floatVal REAL, doubleVal REAL)",
}
OPTIONAL = {"mpi": ("MPI_",), "nic": ("TARGET_INFO_N", "NIC_ID", "NET_NIC"), "efa": ("GENERIC_",), "nvtx": ("NVTX_",)}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out"); ap.add_argument("--kernels", type=int, default=1000)
    for k, v in (("devices", 2), ("streams", 2), ("rank", 0), ("seed", 1)):
        ap.add_argument("--" + k, type=int, default=v)
    for k in ("nvtx", "mpi", "nic", "efa", "parquet"):
        ap.add_argument("--" + k, action="store_true")
    a = ap.parse_args()
    rng = np.random.default_rng(a.seed + 1000 * a.rank)
    out = pathlib.Path(a.out); out.unlink(missing_ok=True)
    db = sqlite3.connect(out)
    db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
    skip = tuple(p for k, ps in OPTIONAL.items() if not getattr(a, k) for p in ps)
    for t, cols in SCHEMA.items():
        if not (skip and t.startswith(skip)):
            db.execute(f"CREATE TABLE {t} {cols}")
    ids = {}

    def s(v):
        return ids.setdefault(v, len(ids) + 1)

    def put(t, row):
        db.execute(f"INSERT INTO {t} VALUES ({','.join('?' * len(row))})", row)

    pid = 4000 + a.rank
    gpid = (1 << 48) | (pid << 24)
    tid = gpid | pid
    put("META_DATA_EXPORT", ("EXPORT_SCHEMA_VERSION", "3.13.2"))
    put("PROCESSES", (gpid, pid, "synthetic"))
    put("ThreadNames", (s("main"), 20, tid))
    put("TARGET_INFO_SESSION_START_TIME", (1_700_000_000_000_000_000 + a.rank * 1_000_000, "", ""))
    put("TARGET_INFO_SYSTEM_ENV", (1 << 48, "Start", "Hostname", 0, f"node{a.rank // 8}"))
    for d in range(a.devices):
        put("TARGET_INFO_GPU", (1 << 48, d, "Synthetic GPU", f"0000:{d:02x}:00.0", 132, d))
    for i, n in ((1, "Host-to-Device"), (2, "Device-to-Host"), (8, "Device-to-Device")):
        put("ENUM_CUDA_MEMCPY_OPER", (i, "CUDA_MEMCPY_KIND_" + "".join(w[0] for w in n.split("-")).upper(), n))
    for i, n in enumerate(("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown")):
        put("ENUM_CUDA_MEM_KIND", (i, "CUDA_MEMOPR_MEMORY_KIND_" + n.upper().replace(" ", "_"), n))

    # ---- kernels: back to back on each (device, stream), with random gaps -------
    N, lanes = a.kernels, a.devices * a.streams
    names = [(f"void gemm_{i}<float, {i}>(float *, int)", f"gemm_{i}") for i in range(40)]
    names += [(f"ncclDevKernel_{o}_RING_LL(ncclDevComm *, unsigned long, ncclWork *)", f"ncclDevKernel_{o}_RING_LL")
              for o in ("AllReduce_Sum_f32", "AllGather", "ReduceScatter_Sum_f32")]
    dem = np.array([s(d) for d, _ in names]); sho = np.array([s(b) for _, b in names])
    pick = rng.integers(0, len(names), N)
    dur = rng.lognormal(9.0, 1.2, N).astype(np.int64) + 500
    gap = rng.exponential(3000, N).astype(np.int64)
    lane = np.arange(N) % lanes
    start = np.empty(N, np.int64)
    for l in range(lanes):
        m = lane == l
        step = dur[m] + gap[m]
        start[m] = 10_000_000 + np.concatenate(([0], np.cumsum(step)[:-1]))
    end = start + dur
    corr = np.arange(1, N + 1)
    rows = zip(start.tolist(), end.tolist(), (lane % a.devices).tolist(), (7 + lane // a.devices).tolist(),
               corr.tolist(), dem[pick].tolist(), sho[pick].tolist(), corr.tolist())
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,1,NULL,?,?,%d,?,?,NULL,1,1,32,128,1,1,256,1,1,0,0,0,0,?,32768,NULL,0)" % gpid, rows)
    # ---- one launch call per kernel; 10% of them end after the kernel has started
    launch = s("cudaLaunchKernel_v7000")
    order = np.argsort(start, kind="stable")
    astart = np.maximum.accumulate(np.maximum(start[order] - rng.integers(3000, 60000, N), 0) + np.arange(N))
    alen = rng.integers(1500, 9000, N)
    nxt = np.append(astart[1:], astart[-1] + 10_000 if N else 0)
    aend = np.minimum(astart + alen, np.maximum(nxt, astart + 1))
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,%d,?,%d,0,NULL)" % (tid, launch),
                   zip(astart.tolist(), aend.tolist(), corr[order].tolist()))
    tmax = int(end.max()) if N else 0
    # ---- memory operations -----------------------------------------------------
    cid, M = N + 1, max(4, N // 50)
    for i in range(M):
        t = 10_000_000 + i * max(1, tmax // (M + 1)); kind = (1, 2, 8)[i % 3]; size = int(rng.integers(64, 1 << 24))
        api = ("cudaMemcpyAsync_v3020", "cudaMemcpy_v3020")[i % 2]
        put("CUPTI_ACTIVITY_KIND_RUNTIME", (t, t + 4000, 0, tid, cid, s(api), 0, None))
        src, dst = {1: (i % 2, 2), 2: (2, i % 2), 8: (2, 2)}[kind]
        put("CUPTI_ACTIVITY_KIND_MEMCPY", (t + 2000, t + 2000 + size // 20 + 1, i % a.devices, 1, None, 7, cid, gpid, size, kind,
                                           None, src, dst, None, None, None, None, None, None, None))
        cid += 1
        if i % 4 == 0:
            put("CUPTI_ACTIVITY_KIND_RUNTIME", (t + 5000, t + 7000, 0, tid, cid, s("cudaMemset_v3020"), 0, None))
            put("CUPTI_ACTIVITY_KIND_MEMSET", (t + 6000, t + 6800, i % a.devices, 1, None, 7, cid, gpid, 0, size, None, 2)); cid += 1
            put("CUPTI_ACTIVITY_KIND_RUNTIME", (t + 8000, t + 90000, 0, tid, cid, s("cudaDeviceSynchronize_v3020"), 0, None))
            put("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", (t + 8100, t + 89000, i % a.devices, 1, None, 4294967295, cid, gpid, 4, 4294967295)); cid += 1
    tmax = max(tmax, 20_000_000)
    nv = (lambda t0, t1, et, text, tidx, dom, js=None: put("NVTX_EVENTS", (
        t0, t1, et, None, None, None, text, tid, None, tidx, dom, None, None, None, None, None, None, None, js)))
    if a.nvtx:
        nv(0, None, 75, "NCCL", None, 1)
        steps = 20; w = tmax // steps
        for i in range(steps):                                   # step > forward/backward > layer
            t = i * w
            nv(t, t + w - 10, 59, None, s("step"), 0)
            for j, n in enumerate(("forward", "backward")):
                t1 = t + 5 + j * (w // 2 - 10)
                nv(t1, t1 + w // 2 - 40, 59, n if i % 2 else None, None if i % 2 else s(n), 0)
                for k in range(3):
                    t2 = t1 + 5 + k * (w // 6 - 20)
                    nv(t2, t2 + w // 6 - 60, 59, f"layer {k}", None, 0)
            nv(t + w // 3, t + w // 3 + 50_000, 59, None, s("ncclAllReduce"), 1,
               json.dumps({"NCCL communicator ID": 77, "Message size [bytes]": 4096 * (i + 1), "Reduction operation": "Sum"}))
        nv(1000, tmax - 1000, 60, "whole run (start/end)", None, 0)
        nv(2000, None, 34, "a mark", None, 0)
        nv(tmax // 2, None, 59, "never closed", None, 0)
    if a.mpi:
        put("MPI_RANKS", (tid, a.rank))
        for i in range(200):
            t = i * (tmax // 201)
            put("MPI_P2P_EVENTS", (t, t + 1000 + 7 * i, tid, s(("MPI_Send", "MPI_Recv")[i % 2]), 1, 5, (a.rank + 1) % 8, 8 * i, None))
            put("MPI_COLLECTIVES_EVENTS", (t + 20_000, t + 25_000 + 11 * i, tid, s("MPI_Allreduce"), 1, None, 64, 64, None))
    if a.nic:
        for n, u in enumerate(("Bytes sent", "Bytes received", "Send waits")):
            put("TARGET_INFO_NETWORK_METRICS", (1, n, "IB: " + u, u, "bytes/ms" if n < 2 else "ticks/ms"))
        for d in range(2):
            put("TARGET_INFO_NIC_INFO", (0xABC0 + d, "Start", d, f"mlx5_{d}", 4129, 5555, 2)); put("NIC_ID_MAP", (d, 900 + d))
            for t in range(0, tmax, 1_000_000):
                for n in range(3):
                    put("NET_NIC_METRIC", (t, t + 1_000_000, 900 + d, 1, 1, n, int(rng.integers(0, 5_000_000))))
    if a.efa:
        ctr = ("rdma_read_bytes", "rdma_write_bytes", "rdma_read_resp_bytes", "rdma_write_recv_bytes", "tx_bytes", "rx_bytes")
        sid = 1 << 57; put("GENERIC_EVENT_SOURCES", (sid, s("EFA"), 1, 0, "{}")); g = 1
        for d in range(4):
            typ = sid | (d + 1); put("GENERIC_EVENT_TYPES", (typ, sid, s(f"rdmap{d}s0"), "{}"))
            for f, c in enumerate(ctr):
                put("GENERIC_EVENT_TYPE_FIELDS", (typ, f, s(c), 8 * f, 8, 1))
            for t in range(0, tmax, 100_000_000):
                v = [int(rng.integers(0, 12_500_000_000)) for _ in ctr]
                put("GENERIC_EVENTS", (g, t, t, typ, None, json.dumps({c: str(x) for c, x in zip(ctr, v)})))
                for f, x in enumerate(v):
                    put("GENERIC_EVENT_DATA", (g, f, None, x, None, None))
                g += 1
    put("ANALYSIS_DETAILS", (1 << 48, tmax, 0, tmax))
    db.executemany("INSERT INTO StringIds VALUES (?,?)", [(0, "[Unknown]")] + [(i, v) for v, i in ids.items()])
    db.commit()
    if a.parquet:
        import pandas as pd
        dst = out.with_name(out.stem + "_pqtdir"); dst.mkdir(exist_ok=True)
        for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall():
            df = pd.read_sql_query(f"SELECT * FROM {t}", db)
            if len(df):
                df.to_parquet(dst / f"{t}.parquet", index=False)
    print(f"{out}: {N} kernels, {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
