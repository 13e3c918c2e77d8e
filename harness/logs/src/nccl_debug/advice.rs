//! What warnings of NCCL mean: for each kind its cause, and what to do. The patterns are texts of NCCL and its plugins,
//! over all versions; what matches no kind is reported verbatim.

use serde::Serialize;

/// A kind of warning. A text is of the first kind whose words it all contains.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// Such as `ib-completion`; findings show it in parentheses.
    pub code: &'static str,
    /// In small letters; between bars any of several.
    #[serde(skip)]
    words: &'static [&'static str],
    /// What went wrong, in a clause.
    pub cause: &'static str,
    /// What to check or to set.
    pub advice: &'static str,
}

const fn kind(
    code: &'static str,
    words: &'static [&'static str],
    cause: &'static str,
    advice: &'static str,
) -> Kind {
    Kind { code, words, cause, advice }
}

/// Particular ones first: a text may hold the words of several.
pub const KINDS: [Kind; 34] = [
    kind(
        "no-space",
        &["no space left on device"],
        "a file system is full, usually /dev/shm",
        "free it, or give containers more shared memory (`--shm-size`)",
    ),
    kind(
        "shared-memory",
        &["/dev/shm|shared memory segment|shmopen|shm_open|error while attaching to shared memory"],
        "a shared memory segment could not be created or opened",
        "give containers more shared memory (`--shm-size`), and all ranks of a node one IPC namespace (`--ipc=host`)",
    ),
    kind(
        "memlock",
        &[
            "ibv_reg_mr|ibv_create_cq|ibv_create_qp|ibv_reg_dmabuf_mr",
            "cannot allocate memory|enomem|errno 12",
        ],
        "the locked-memory limit is too low for the network card",
        "set `ulimit -l unlimited` for jobs (`LimitMEMLOCK=infinity` of slurmd, limits of the container)",
    ),
    kind(
        "out-of-memory",
        &[
            "out of memory|cannot allocate memory|failed to cuda calloc|cuda failure 2 |failed to cuda malloc|failed to cuda host alloc",
        ],
        "the GPU or the host ran out of memory",
        "leave memory for NCCL beside the program's own, and look for leftover processes on the GPU",
    ),
    kind(
        "network-not-found",
        &["network", "not found"],
        "no plugin offers the network that `NCCL_NET` names",
        "check that the plugin is on LD_LIBRARY_PATH in the job's environment, or unset `NCCL_NET`",
    ),
    kind(
        "plugin-not-loaded",
        &[
            "failed to open libnccl-net|failed to load net plugin|failed to find ncclnet|plugin load",
            "plugin|libnccl|ncclnet",
        ],
        "the network plugin is missing, or its version does not match NCCL",
        "install a plugin that matches this NCCL version, and put its folder on LD_LIBRARY_PATH",
    ),
    kind(
        "ofi-no-provider",
        &["ofi", "provider", "no eligible|failed to find|no provider|unable to find|could not find"],
        "the plugin found no usable libfabric provider",
        "run `fi_info -p efa` on the node; check the EFA driver, the security group, and /dev/infiniband in the container",
    ),
    kind(
        "ofi-completion",
        &[
            "ofi|libfabric, efa",
            "completed with error|completion with error|request failed|unsuccessful completion|libfabric, efa",
        ],
        "a libfabric transfer failed: the peer is gone, or the fabric lost it",
        "check first why the other rank ended, then the retransmission counters of both nodes",
    ),
    kind(
        "gdr",
        &["gdrcopy|gdrdrv|nv_peer_mem|nvidia_peermem|peermem|dmabuf|dma-buf"],
        "the network card cannot access GPU memory directly (GPUDirect RDMA)",
        "load `nvidia-peermem`, or use drivers with dma-buf; check `NCCL_NET_GDR_LEVEL`",
    ),
    kind(
        "ofi",
        &["net/ofi|aws-ofi-nccl"],
        "the libfabric plugin reports a problem",
        "compare plugin, libfabric and EFA driver versions with a node without the warning",
    ),
    kind(
        "ib-completion",
        &[
            "net/ib|ibv_modify_qp",
            "got completion|completion with error|async event|retry exceeded|vendor err|ibv_modify_qp",
        ],
        "an InfiniBand or RoCE transfer failed: usually the link went down, or the peer is gone",
        "check the link and the error counters of the port, and why the other rank ended",
    ),
    kind(
        "ib-no-device",
        &["net/ib", "no device found|unable to open|failed to open|no active"],
        "no InfiniBand or RoCE card is usable",
        "check that `ibv_devinfo` shows an active port in the job, and `NCCL_IB_HCA`",
    ),
    kind(
        "connection-refused",
        &["connection refused"],
        "the peer does not listen: the other rank has ended, or a firewall blocks the port",
        "look for the rank that ended first; check `NCCL_SOCKET_IFNAME` and the security group",
    ),
    kind(
        "connection-lost",
        &[
            "connection reset|connection closed|broken pipe|remote process exited|software caused connection abort|remote peer",
        ],
        "the peer closed the connection: it usually crashed or was killed before",
        "the rank that reports this is seldom the culprit: look for the first failure of the others",
    ),
    kind(
        "connection-timed-out",
        &["connection timed out|connect|socket", "timed out|timeout"],
        "the peer does not answer: a firewall, a wrong interface, or a node that is down",
        "check `NCCL_SOCKET_IFNAME` (exclude docker and lo), and that nodes reach each other on all ports",
    ),
    kind(
        "unreachable",
        &["no route to host|network is unreachable|unreachable"],
        "no route from this node to the peer on that interface",
        "check routes and `NCCL_SOCKET_IFNAME`",
    ),
    kind(
        "no-interface",
        &["no socket interface found|no interface found|no usable interface|bootstrap : no"],
        "no network interface matches `NCCL_SOCKET_IFNAME`",
        "name an interface that every node has, or exclude those that do not connect nodes: `^docker,lo`",
    ),
    kind(
        "too-many-files",
        &["too many open files|emfile"],
        "the open-files limit is too low for this many connections",
        "set `ulimit -n 65536` for jobs",
    ),
    kind(
        "too-many-threads",
        &["pthread_create"],
        "no thread could be created: the process limit is too low",
        "raise `ulimit -u`, or the container's process limit",
    ),
    kind(
        "driver-too-old",
        &["cuda driver version is insufficient|driver version|cudadriver|cuda driver"],
        "the driver is older than this CUDA requires",
        "update the driver, or use an NCCL built for a CUDA version that the driver supports",
    ),
    kind(
        "cuda-not-usable",
        &[
            "no cuda-capable device|invalid device ordinal|peer access|system not yet initialized|fabric manager|error 802|busy or unavailable|gpu is lost|gpu requires reset",
        ],
        "a GPU is not usable: missing, in exclusive use, or the fabric manager is not running",
        "check `nvidia-smi` and `systemctl status nvidia-fabricmanager` on the node",
    ),
    kind(
        "gpu-fault",
        &[
            "illegal memory access|uncorrectable|ecc error|unspecified launch failure|hardware|misaligned address|xid",
        ],
        "a kernel failed on the GPU: an error of the program or of the hardware",
        "look for Xid lines in `dmesg` on the node; run the single-GPU check on it",
    ),
    kind(
        "cuda",
        &["cuda failure|unhandled cuda error|cuda error"],
        "a CUDA call failed",
        "the first failure of the process is the cause: look above, and for Xid lines in `dmesg`",
    ),
    kind(
        "duplicate-gpu",
        &["duplicate gpu detected"],
        "two ranks of one communicator use the same GPU",
        "give each rank its own GPU: `CUDA_VISIBLE_DEVICES` or `set_device(local_rank)`",
    ),
    kind(
        "version-mismatch",
        &["mismatch|version|incompatible", "nccl version|versions| abi |different version"],
        "ranks, or NCCL and its plugin, have different versions",
        "use one image on all nodes; compare the versions in the logs",
    ),
    kind(
        "nvls",
        &["nvls|multicast"],
        "NVLink SHARP (NVLS) could not be set up",
        "check the fabric manager and the driver; `NCCL_NVLS_ENABLE=0` is a workaround that costs bandwidth",
    ),
    kind(
        "topology",
        &["topo|xml|numa|pci|attribute "],
        "the topology of the machine is not as NCCL expects it",
        "check `NCCL_TOPO_FILE`, and that the container sees /sys; compare the node with a good one",
    ),
    kind(
        "collectives-differ",
        &["collective|message truncated", "mismatch|different|truncated"],
        "ranks called different collectives on one communicator",
        "see the first difference between the ranks' calls; usually a branch that only some ranks take",
    ),
    kind(
        "invalid-usage",
        &[
            "invalid argument|invalid usage|invalid rank|invalid root|invalid reduction|invalid type|is not a valid pointer|argument",
        ],
        "the program called NCCL with an invalid argument",
        "check what the program passes; `NCCL_CHECK_POINTERS=1` reports more",
    ),
    kind(
        "aborted",
        &["abort|ncclcommabort|operation cancelled"],
        "the communicator was aborted: by the watchdog, or because another rank failed",
        "look for the first failure of the others",
    ),
    kind(
        "timed-out",
        &["watchdog|timed out|timeout"],
        "an operation exceeded its timeout",
        "look for the rank that never joined: the one without the call in which all others wait",
    ),
    kind(
        "environment",
        &["nccl_|environment|env"],
        "an environment variable has a value that NCCL rejects",
        "read NCCL's message; `harness check` validates variables by version",
    ),
    kind(
        "bootstrap",
        &["bootstrap"],
        "the ranks did not connect to each other at startup",
        "check that all ranks started with the same id, and that rank 0's node is reachable",
    ),
    kind(
        "call-failed",
        &["call to|system error|internal error|failed|error encountered|could not receive"],
        "a system call or a call of NCCL itself failed",
        "the text names it; the earliest of these lines is the cause of the others",
    ),
];

pub(super) fn classify(text: &str) -> Option<&'static Kind> {
    let text = text.to_ascii_lowercase();
    KINDS.iter().find(|kind| kind.words.iter().all(|words| words.split('|').any(|word| text.contains(word))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// For each kind a warning in NCCL's words.
    const SAID: [(&str, &str); 34] = [
        ("no-space", "Error: failed to extend /dev/shm/nccl-x to 5767524 bytes: No space left on device"),
        ("shared-memory", "Error while creating shared memory segment /dev/shm/nccl-AbC (size 5767520)"),
        ("memlock", "Call to ibv_create_cq failed with error Cannot allocate memory"),
        ("out-of-memory", "Cuda failure 2 'out of memory'"),
        ("network-not-found", "Error: network AWS Libfabric not found."),
        ("plugin-not-loaded", "NET/Plugin: Failed to find ncclNetPlugin_v6 symbol."),
        (
            "ofi-no-provider",
            "NET/OFI Failed to find any libfabric providers: no eligible providers were found",
        ),
        (
            "ofi-completion",
            "NET/OFI Request 0x7f completed with error. RC: 113. Error: Receiver not responding",
        ),
        ("ofi", "NET/OFI Couldn't open CQ"),
        (
            "ib-completion",
            "NET/IB : Got completion from peer 10.0.0.2<4> with status=12 opcode=1 len=0 vendor err 129",
        ),
        ("ib-no-device", "NET/IB : Unable to open device mlx5_0"),
        ("gdr", "GDRCOPY enabled but library not found or too old"),
        ("connection-refused", "socketStartConnect: Connect to 10.0.0.2<4> failed : Connection refused"),
        ("connection-lost", "socketProgress: Connection closed by remote peer a<1>"),
        ("connection-timed-out", "Connect to 10.0.0.2<4> failed : Connection timed out"),
        ("unreachable", "Connect to 10.0.0.2<4> failed : No route to host"),
        ("no-interface", "Bootstrap : no socket interface found"),
        ("too-many-files", "Call to accept failed: Too many open files"),
        ("too-many-threads", "Call to pthread_create failed"),
        ("driver-too-old", "CUDA driver version is insufficient for CUDA runtime version"),
        ("cuda-not-usable", "Cuda failure 802 'system not yet initialized'"),
        ("gpu-fault", "Cuda failure 700 'an illegal memory access was encountered'"),
        ("cuda", "Cuda failure 999 'unknown error'"),
        ("duplicate-gpu", "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 53000"),
        ("version-mismatch", "Mismatched NCCL version detected : rank 0 uses 2.18.5, rank 3 uses 2.19.3"),
        ("nvls", "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152"),
        ("topology", "Could not find real path of /sys/class/pci_bus/0000:53/../../0000:53:00.0"),
        ("collectives-differ", "Mismatch of collective operations between ranks"),
        ("invalid-usage", "AllReduce : invalid root 9 (root should be in the 0..8 range)"),
        ("aborted", "proxy thread exits on abort"),
        ("timed-out", "Watchdog caught a rank that hangs"),
        ("environment", "NCCL_ALGO: unrecognised value"),
        ("bootstrap", "Bootstrap Root : mismatch in rank count from procs 16 : 8"),
        ("call-failed", "Call to posix_fallocate returned 1"),
    ];

    #[test]
    fn each_kind_has_words_of_its_own() {
        for (code, text) in SAID {
            assert_eq!(classify(text).map(|kind| kind.code), Some(code), "{text}");
        }
        let said: BTreeSet<&str> = SAID.iter().map(|(code, _)| *code).collect();
        let kinds: BTreeSet<&str> = KINDS.iter().map(|kind| kind.code).collect();
        assert_eq!((said.len(), &said), (KINDS.len(), &kinds));
        assert_eq!(classify("An unheard warning"), None);
        for (text, code) in [
            ("NET/OFI Could not find ncclGetVersion symbol", "ofi"),
            ("libfabric, efa: Invalid address, from i-0db7083f3f to i-0ce6d3d571", "ofi-completion"),
            ("NET/OFI Failed to initialize GDRCopy: Failed to open gdr handle", "gdr"),
            // https://github.com/NVIDIA/nccl/issues/296 and 1176
            (
                "Mismatched collective detected, please check your collective calls at and around rank 7",
                "collectives-differ",
            ),
            ("Message truncated : received 64 bytes instead of 4", "collectives-differ"),
            // https://github.com/aws/aws-ofi-nccl/issues/663: nothing was sent yet
            (
                "NET/OFI Unable to insert remote address into address vector for device 1. RC: Invalid argument",
                "ofi",
            ),
            ("[Service thread] Accept failed Resource temporarily unavailable", "call-failed"),
            (
                "[Service thread] Error encountered progressing operation=Connect, res=3, closing connection",
                "call-failed",
            ),
            ("Could not receive type from localRank 3, res=3, closed=0", "call-failed"),
            ("Call to ibv_modify_qp failed with error Connection timed out", "ib-completion"),
            ("nvmlDeviceGetHandleByPciBusId(0000:53:00.0) failed: GPU is lost", "cuda-not-usable"),
            ("Cuda failure 46 'CUDA-capable device(s) is/are busy or unavailable'", "cuda-not-usable"),
            // https://github.com/NVIDIA/nccl/issues/1726
            ("Attribute arch of node cpu not found", "topology"),
            ("Failed to CUDA host alloc 65536 bytes", "out-of-memory"),
            // Three digits of a pointer are no error of memory.
            ("Call to x failed on comm 0x7f1ecc0040", "call-failed"),
            ("capability of the GPU is incompatible with this call to y", "call-failed"),
        ] {
            assert_eq!(classify(text).map(|kind| kind.code), Some(code), "{text}");
        }
    }
}
