//! One line of each kind as versions from 2.4 to 2.30 write it, and what it is taken for.

use super::super::line::{self, Said};
use super::super::nccl_prefix::Level;

/// The kind in a word.
fn kind(said: &Said) -> &'static str {
    match said {
        Said::Call(_) => "call",
        Said::Version { .. } => "version",
        Said::Driver(_) => "driver",
        Said::Setup(_) => "setup",
        Said::Timings(_) => "timings",
        Said::Members(_) => "members",
        Said::Bootstrap(_) => "bootstrap",
        Said::Network(_) => "network",
        Said::Provider { .. } => "provider",
        Said::Cards { .. } => "cards",
        Said::Plugin(_) | Said::Libfabric(_) => "plugin",
        Said::Order { .. } => "order",
        Said::Ring { .. } => "ring",
        Said::Tree { .. } | Said::Trees(_) => "tree",
        Said::NvlsTrees(_) => "nvls tree",
        Said::Connection(_) => "connection",
        Said::Connected(_) => "connected",
        Said::Channels { .. } => "channels",
        Said::Choice(_) => "choice",
        Said::Nvls { .. } => "nvls",
        Said::Variable { .. } => "variable",
        Said::Known => "known",
    }
}

const CALL: &str = "opCount 1f sendbuff 0x7f00 recvbuff 0x7f10 count 4 datatype 7 op 0 root 0 comm 0x55 [nranks=8] stream 0x56";

const LINES: &[(&str, &str)] = &[
    ("NCCL version 2.4.8+cuda10.1", "version"),
    ("NCCL version 2.30.7+cuda13.1", "version"),
    ("cudaDriverVersion 12020", "driver"),
    ("Bootstrap : Using eth0:10.0.0.1<0>", "bootstrap"),
    ("Bootstrap: Using eth0:10.0.0.1<0>", "bootstrap"),
    (
        "Bootstrap timings total 0.102134 (create 0.000023, send 0.000123, recv 0.000301, ring 0.01, delay 0.0)",
        "known",
    ),
    ("NET/Plugin : No plugin found (libnccl-net.so), using internal implementation", "known"),
    ("NET/Plugin: Loaded net plugin AWS Libfabric (v8)", "known"),
    ("Using network Socket", "network"),
    ("Using network AWS Libfabric", "network"),
    ("Using non-device net plugin version 0", "known"),
    ("NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", "cards"),
    ("NET/Socket : Using [0]eth0:10.0.0.1<0>", "cards"),
    ("NET/OFI Initializing aws-ofi-nccl 1.16.3", "plugin"),
    ("NET/OFI Using aws-ofi-nccl 1.7.1aws", "plugin"),
    ("NET/OFI Using Libfabric version 1.22", "plugin"),
    ("NET/OFI Selected Provider is efa (found 4 nics)", "provider"),
    ("NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)", "provider"),
    ("NET/OFI Using transport protocol RDMA (platform set)", "known"),
    ("comm 0x55 rank 0 nranks 8 cudaDev 0 busId 1a0 - Init COMPLETE", "setup"),
    ("comm 0x55 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1a0 commId 0xabc - Init START", "setup"),
    (
        "ncclCommInitRank comm 0x55 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1a0 commId 0xabc - Init COMPLETE",
        "setup",
    ),
    (
        "ncclCommSplit comm 0x55 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1a0 parent 0x44 color 1 key 0 commId 0xabd - Init COMPLETE",
        "setup",
    ),
    (
        "[Rank 0] ncclCommInitRankConfig comm 0x55 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1a0 commId 0xabc - Init START",
        "setup",
    ),
    ("comm 0x55 rank 0 nranks 8 cudaDev 0 busId 1a0 - Destroy COMPLETE", "setup"),
    ("comm 0x55 rank 0 nranks 8 cudaDev 0 busId 1a0 - Abort COMPLETE", "setup"),
    (
        "Init timings: rank 0 nranks 8 total 1.25 (kernels 0.25, bootstrap 0.5, allgathers 0.1, topo 0.2, graphs 0.1, connections 0.1, rest 0.0)",
        "timings",
    ),
    (
        "Init timings - ncclCommInitRank: rank 0 nranks 8 total 1.25 (kernels 0.25, alloc 0.1, bootstrap 0.5, rest 0.4)",
        "timings",
    ),
    ("comm 0x55 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0", "members"),
    ("Channel 00 :    0   1   2   3", "order"),
    ("Channel 00/02 :    0   1   2   3", "order"),
    ("Ring 00 : 7 -> 0 -> 1", "ring"),
    ("Ring 00 : 0[4000] -> 1[5000] via P2P/IPC", "connection"),
    ("Ring 00 : 7 -> 8 [receive] via NET/AWS Libfabric/0", "connection"),
    ("Ring 00 : 15 -> 0 [send] via NET/AWS Libfabric/0/GDRDMA", "connection"),
    ("Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1", "tree"),
    ("Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1", "tree"),
    ("Tree 0 : -1 -> 0 -> 1/-1/-1", "tree"),
    ("NVLS Trees : [0] 1/-1/-1->0->-1", "nvls tree"),
    ("Channel 00 : 0[1a0] -> 1[1b0] via P2P/IPC/read", "connection"),
    ("Channel 00/0 : 0[1a0] -> 8[1a0] [send] via NET/AWS Libfabric/0/GDRDMA", "connection"),
    ("Channel 01/1 : 8[0] -> 0[0] [receive] via NET/IB/1(2)/GDRDMA/Shared", "connection"),
    ("Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct", "connection"),
    ("Channel 00/0 : 0[0] -> 1[1] via P2P/indirect/5[a0]", "connection"),
    ("Connected all rings", "connected"),
    ("Connected all rings, use ring PXN 0 GDR 1", "connected"),
    ("Connected all trees", "connected"),
    ("Connected NVLS tree", "connected"),
    ("24 coll channels, 32 p2p channels, 2 p2p channels per peer", "channels"),
    ("24 coll channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer", "channels"),
    (
        "24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer",
        "channels",
    ),
    ("1024 Bytes -> Algo 1 proto 0 time 12.500000", "choice"),
    ("AllReduce: 1024 Bytes -> Algo 1 proto 0 time 12.500000", "choice"),
    ("AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}", "choice"),
    ("AllGather [Symmetric]: 1024 Bytes -> Kernel AllGather_STMC nchannels 8 nthreads 512", "choice"),
    ("AllGather [Copy Engine]: 1024 Bytes -> Kernel CE nchannels 0", "choice"),
    ("AllGather [Hierarchical CE]: 1024 Bytes -> Kernel CE nchannels 0", "choice"),
    ("NVLS multicast support is available on dev 0", "nvls"),
    ("NVLS multicast support is not available on dev 0", "nvls"),
    ("NCCL_PROTO set by environment to simple.", "variable"),
    ("threadThresholds 8/8/64 | 16/8/64 | 512 | 512", "known"),
    ("Setting affinity for GPU 0 to ffffff", "known"),
    ("TUNER/Plugin: Could not find: libnccl-tuner.so", "known"),
    ("NCCL git version HEAD 4a1ed42", "known"),
    ("Loading topology file /opt/amazon/ofi-nccl/share/aws-ofi-nccl/xml/p5.48xl-topo.xml", "known"),
    ("Tuning P2P operations", "known"),
    ("ncclOsDlopen(libnccl-gin.so) failed: no such file", "known"),
];

#[test]
fn each_kind_of_line_is_taken_for_what_it_is() {
    for (text, expected) in LINES {
        let said = line::parse(text);
        assert_eq!(said.as_ref().map(kind), Ok(*expected), "{text}");
        // With whatever versions and launchers put before it.
        for prefix in [
            "a:1:2 [0] NCCL INFO ",
            "0: a:1:2 [0] NCCL INFO ",
            "[2025-01-31 12:00:00.250000] a:1:2 [0] NCCL INFO ",
        ] {
            let whole = format!("{prefix}{text}");
            let split = line::split(&whole).expect("a line of NCCL");
            assert_eq!((split.level, split.text, split.host), (Level::Info, *text, "a"), "{whole}");
        }
    }
}

#[test]
fn each_operation_is_a_call_and_other_levels_are_recognized() {
    for operation in super::super::OPERATIONS {
        let text = format!("{}: {CALL}", operation.name());
        assert_eq!(line::parse(&text).as_ref().map(kind), Ok("call"), "{text}");
    }
    let levels = [
        ("a:1:2 [0] net.cc:626 NCCL WARN x", Level::Warn),
        ("[2025-01-31 12:00:00] a:1:2 [0] net.cc:626 (ncclNetInit) NCCL WARN x", Level::Warn),
        ("a:1:2 NCCL CALL ncclAllReduce(0x1,0x2)", Level::Call),
        ("a:1:2 [0] 12.5 ncclSend:88 NCCL TRACE x", Level::Trace),
    ];
    for (text, level) in levels {
        let split = line::split(text).expect("a line of NCCL");
        assert_eq!((split.level, split.host, split.pid), (level, "a", 1), "{text}");
    }
}
