//! Lines that NCCL prints for its own developers: they are known by how they begin, and nothing is taken of them.

/// With which words they begin.
const BEGINNINGS: &[&str] = &[
    // How the machine looks, and what was searched in it.
    "=== System",
    "=====",
    "CPU/",
    "GPU/",
    "NIC/",
    "PCI/",
    "NVS/",
    "NET/",
    "GIN/",
    "+ ",
    "Pattern ",
    "Search ",
    "TOPO/",
    "ncclTopo",
    "Topology",
    "NVLink",
    "MNNVL",
    "Ring/",
    "Rings ",
    "CollNet",
    "COLLNET",
    "CollTrees",
    "NVLS ",
    "Cross NIC",
    // What tuning believes.
    "Algorithm ",
    "Protocol ",
    "Max NThreads",
    "LL ",
    "Latency/AlgBw",
    "threadThresholds",
    "TUNER/",
    "ENV/Plugin",
    "ncclTuner",
    "Tuning ",
    "Broadcast |",
    "Reduce |",
    "AllGather |",
    "ReduceScatter |",
    "AllReduce |",
    "Tree |",
    // How memory and connections are made.
    "Setting affinity",
    "Launch mode",
    "Connected to proxy",
    "New proxy",
    "Proxy ",
    "[Proxy ",
    "[Service",
    "Service thread",
    "UDS:",
    "Allocated ",
    "Alloc ",
    "Cuda ",
    "CUDA ",
    "CUMEM",
    "CUMEMHOST",
    "Mem ",
    "P2P ",
    "SHM ",
    "DMA-BUF",
    "DMABUF",
    "Check P2P",
    "Could not",
    "GPU Direct",
    "Register",
    "Deregister",
    "register",
    "Received and initiated",
    "Retrieving ",
    "Allreduce",
    "ncclPollProxyResponse",
    "proxyProgressAsync",
    "resp.opId",
    "ncclProxy",
    "PXN",
    "Skipping",
    "Symmetric",
    // What was loaded.
    "NCCL git version",
    "Loading topology file",
    "ncclOsDlopen",
    "Plugin",
    "PROFILER/",
    "Profiler",
    "Successfully loaded",
    "Loaded ",
    "Failed to ",
    "dlvsym failed",
    "dlopen",
    "Using ",
    "Assigned ",
    "Initialized ",
    "Initializing",
    "Bootstrap",
    "bootstrap",
    "Call to ",
    "RAS ",
    "Enabled ",
    "Disabled ",
    "Disabling",
    "Enabling",
    "NCCL_",
    "CC ",
    "cuda",
    "Config ",
    "comm config",
    "Comm config",
    "Running ",
    // What is said of a communicator beside its life.
    "comm 0x",
    "ncclComm",
    "ncclGroup",
    "ncclMem",
    "commDesc",
    "Trees ",
    "Connected ",
    "Destroy",
    "Abort",
    "AllocTree",
];

pub(super) fn is_known(text: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) || is_trail(text) || is_path(text)
}

/// `enqueue.cc:123 -> 1`, `channel.cc:12 Cuda Alloc …`: a place in NCCL's source comes first.
fn is_trail(text: &str) -> bool {
    let Some((place, _)) = text.split_once(' ') else { return false };
    let Some((file, line)) = place.rsplit_once(':') else { return false };
    (file.ends_with(".cc")
        || file.ends_with(".cu")
        || file.ends_with(".h")
        || file.ends_with(".hpp")
        || file.ends_with(".cpp"))
        && !line.is_empty()
        && line.bytes().all(|byte| byte.is_ascii_digit())
}

/// ` 0 : GPU/0-17000 GPU/0-65000`: a channel as the search found it, or a row of a table.
fn is_path(text: &str) -> bool {
    let Some((channel, path)) = text.split_once(" : ") else { return text.starts_with('|') };
    !channel.is_empty()
        && channel.trim().bytes().all(|byte| byte.is_ascii_digit())
        && ["GPU/", "NET/", "NIC/", "CPU/"].iter().any(|kind| path.trim_start().starts_with(kind))
}
