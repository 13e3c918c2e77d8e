//! What warnings of NCCL mean: for each kind its cause, and what to do. The words are NCCL's and its plugins', over all versions; what
//! no kind claims is told as it stands.

use serde::Serialize;

/// A kind of warning. The first whose words are all in a text is its kind.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    pub code: &'static str,
    /// In small letters; between bars any of several.
    #[serde(skip)]
    words: &'static [&'static str],
    pub cause: &'static str,
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
        "a file system is full, mostly /dev/shm",
        "free it, or give containers more shared memory (`--shm-size`)",
    ),
    kind(
        "shared-memory",
        &["/dev/shm|shared memory segment|shmopen|shm_open|error while attaching to shared memory"],
        "a segment of shared memory could not be made or opened",
        "give containers more shared memory and one IPC name space for the ranks of a node",
    ),
    kind(
        "memlock",
        &[
            "ibv_reg_mr|ibv_create_cq|ibv_create_qp|ibv_reg_dmabuf_mr",
            "cannot allocate memory|enomem|errno 12",
        ],
        "the limit of locked memory is too low for the network card",
        "set `ulimit -l unlimited` for jobs (`LimitMEMLOCK=infinity` of slurmd, limits of the container)",
    ),
    kind(
        "out-of-memory",
        &["out of memory|cannot allocate memory|failed to cuda calloc|cuda failure 2 |failed to cuda malloc"],
        "memory of the GPU, or of the host, ran out",
        "leave NCCL room beside the program's own memory, and look for processes left over on the GPU",
    ),
    kind(
        "network-not-found",
        &["network", "not found"],
        "the network that `NCCL_NET` names is offered by no plugin",
        "check that the plugin lies on LD_LIBRARY_PATH in the job's own environment, or leave `NCCL_NET` out",
    ),
    kind(
        "plugin-not-loaded",
        &[
            "failed to open libnccl-net|failed to load net plugin|failed to find ncclnet|plugin load",
            "plugin|libnccl|ncclnet",
        ],
        "the network plugin is not there, or is of another version than NCCL",
        "install a plugin that fits this NCCL, and put its folder on LD_LIBRARY_PATH",
    ),
    kind(
        "ofi-no-provider",
        &["ofi", "no eligible providers|failed to find|no provider|unable to find|could not find"],
        "the plugin found no network of libfabric that it may use",
        "look at `fi_info -p efa` on the node; check the EFA driver, the security group and what the container sees of /dev/infiniband",
    ),
    kind(
        "ofi-completion",
        &["ofi", "completed with error|completion with error|rc: |request failed|unsuccessful completion"],
        "a transfer of libfabric failed: the other end is gone, or the fabric lost it",
        "look at what ended the other rank first; then at the counters of retransmissions of both nodes",
    ),
    kind(
        "ofi",
        &["net/ofi|aws-ofi-nccl"],
        "the plugin of libfabric complains",
        "compare the versions of plugin, libfabric and EFA driver with those of a node without the warning",
    ),
    kind(
        "ib-completion",
        &["net/ib", "got completion|completion with error|async event|retry exceeded|vendor err"],
        "a transfer of the InfiniBand or RoCE card failed: mostly a link that went down, or an end that is gone",
        "look at the link and the error counters of the port, and at what ended the other rank",
    ),
    kind(
        "ib-no-device",
        &["net/ib", "no device found|unable to open|failed to open|no active"],
        "no InfiniBand or RoCE card can be used",
        "check that `ibv_devinfo` shows an active port in the job, and `NCCL_IB_HCA`",
    ),
    kind(
        "gdr",
        &["gdrcopy|gdrdrv|nv_peer_mem|nvidia_peermem|peermem|dmabuf|dma-buf"],
        "the card cannot reach the GPU's memory by itself",
        "load `nvidia-peermem`, or use drivers with dma-buf; check `NCCL_NET_GDR_LEVEL`",
    ),
    kind(
        "connection-refused",
        &["connection refused"],
        "nobody listens where the rank wants to connect: the other rank has ended, or a firewall is between them",
        "look for the rank that ended first; check `NCCL_SOCKET_IFNAME` and the security group",
    ),
    kind(
        "connection-lost",
        &[
            "connection reset|connection closed|broken pipe|remote process exited|software caused connection abort|remote peer",
        ],
        "the other end of a connection is gone: it mostly crashed or was ended before",
        "the rank that says this is seldom the culprit: look for the first failure of the others",
    ),
    kind(
        "connection-timed-out",
        &["connection timed out|connect|socket", "timed out|timeout"],
        "the other end does not answer: a firewall, a wrong interface or a node that is down",
        "check `NCCL_SOCKET_IFNAME` (exclude docker and lo) and that nodes reach each other on all ports",
    ),
    kind(
        "unreachable",
        &["no route to host|network is unreachable|unreachable"],
        "there is no way from this node to the other one on that interface",
        "check routes and `NCCL_SOCKET_IFNAME`",
    ),
    kind(
        "no-interface",
        &["no socket interface found|no interface found|no usable interface|bootstrap : no"],
        "no network interface fits `NCCL_SOCKET_IFNAME`",
        "name one that each node has, or exclude those that do not connect nodes: `^docker,lo`",
    ),
    kind(
        "too-many-files",
        &["too many open files|emfile"],
        "the limit of open files is too low for so many connections",
        "set `ulimit -n 65536` for jobs",
    ),
    kind(
        "too-many-threads",
        &["pthread_create|resource temporarily unavailable"],
        "no thread could be made: the limit of processes is too low",
        "raise `ulimit -u`, or the container's limit of processes",
    ),
    kind(
        "driver-too-old",
        &["cuda driver version is insufficient|driver version|cudadriver|cuda driver"],
        "the driver is older than what this CUDA needs",
        "update the driver, or use NCCL built for the CUDA that the driver knows",
    ),
    kind(
        "cuda-not-usable",
        &[
            "no cuda-capable device|invalid device ordinal|peer access|system not yet initialized|fabric manager|error 802",
        ],
        "a GPU cannot be used: it is missing, held by somebody, or the fabric manager does not run",
        "look at `nvidia-smi` and `systemctl status nvidia-fabricmanager` on the node",
    ),
    kind(
        "gpu-fault",
        &[
            "illegal memory access|uncorrectable|ecc|unspecified launch failure|hardware|misaligned address|xid",
        ],
        "a kernel failed on the GPU, by an error of the program or of the hardware",
        "look for XID lines in `dmesg` of the node; run the single-GPU check on it",
    ),
    kind(
        "cuda",
        &["cuda failure|unhandled cuda error|cuda error"],
        "a call of CUDA failed",
        "the first failure of the process is the cause: look above, and for XID lines in `dmesg`",
    ),
    kind(
        "duplicate-gpu",
        &["duplicate gpu detected"],
        "two ranks of one communicator use the same GPU",
        "give each rank its own: `CUDA_VISIBLE_DEVICES` or `set_device(local_rank)`",
    ),
    kind(
        "version-mismatch",
        &["mismatch|version|incompatible", "nccl version|versions|abi|different version|mismatched"],
        "ranks, or NCCL and its plugin, are of different versions",
        "use one image on all nodes; see which versions the logs tell",
    ),
    kind(
        "nvls",
        &["nvls|multicast"],
        "NVLink SHARP could not be set up",
        "check the fabric manager and the driver; `NCCL_NVLS_ENABLE=0` works around it at a cost",
    ),
    kind(
        "topology",
        &["topo|xml|numa|pci"],
        "the picture of the machine is not as NCCL expects it",
        "check `NCCL_TOPO_FILE`, and that the container sees /sys; compare the node with a good one",
    ),
    kind(
        "collectives-differ",
        &["collective", "mismatch|different"],
        "ranks called different collectives on one communicator",
        "see the first difference between the ranks' calls; it is mostly a branch that some ranks take",
    ),
    kind(
        "invalid-usage",
        &[
            "invalid argument|invalid usage|invalid rank|invalid root|invalid reduction|invalid type|is not a valid pointer|argument",
        ],
        "the program called NCCL with something that cannot be",
        "look at what the program passes there; `NCCL_CHECK_POINTERS=1` tells more",
    ),
    kind(
        "aborted",
        &["abort|ncclcommabort|operation cancelled"],
        "the communicator was given up: by the watchdog, or because another rank failed",
        "look for the first failure of the others",
    ),
    kind(
        "timed-out",
        &["watchdog|timed out|timeout"],
        "something waited longer than it may",
        "look for the rank that did not come: the one without the call that all others wait in",
    ),
    kind(
        "environment",
        &["nccl_|environment|env"],
        "a variable has a value that NCCL does not take",
        "see what NCCL says of it; `harness check` knows the variables by version",
    ),
    kind(
        "bootstrap",
        &["bootstrap"],
        "the ranks did not find each other",
        "check that all ranks were started, with one id, and that the first rank's node is reachable",
    ),
    kind(
        "call-failed",
        &["call to|system error|internal error|failed"],
        "a call of the system or of NCCL itself failed",
        "the text names it; the first of such lines in time is the cause of the others",
    ),
];

pub(super) fn of(text: &str) -> Option<&'static Kind> {
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
    fn each_kind_is_told_by_words_of_its_own() {
        for (code, text) in SAID {
            assert_eq!(of(text).map(|kind| kind.code), Some(code), "{text}");
        }
        let said: BTreeSet<&str> = SAID.iter().map(|(code, _)| *code).collect();
        let kinds: BTreeSet<&str> = KINDS.iter().map(|kind| kind.code).collect();
        assert_eq!((said.len(), &said), (KINDS.len(), &kinds));
        assert_eq!(of("What nobody ever said"), None);
    }
}
