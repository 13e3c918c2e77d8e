//! What libfabric and its EFA provider read. Other providers have variables of their own, of which nothing is known here.

use super::Holds::{Number, OneOf, Something, Switch};
use super::{Held, Holds, Library, Variable, When, note, warn};
use crate::envlint::version::Version;

const fn fi(name: &'static str, holds: Holds) -> Variable {
    Variable::new(name, Library::Libfabric, holds)
}

const SIZE: Holds = Number(0, i64::MAX);
const TAKE_OUT: &str = "remove it";
const ENDS: &str = "is refused: current releases end the process where it is set";
const NOT_NEEDED: &str = "is not needed";
/// From here on libfabric and the plugin settle by themselves what used to be set.
const SETTLED: When =
    When::From(&[(Library::Libfabric, Version::new(1, 18)), (Library::Plugin, Version::new(1, 7))]);

pub(super) const VARIABLES: &[Variable] = &[
    fi("FI_PROVIDER", Something).said(&[
        note(
            Held::Word("efa"),
            When::From(&[(Library::Plugin, Version::new(1, 6))]),
            NOT_NEEDED,
            TAKE_OUT,
        ),
        warn(
            Held::Without("efa"),
            When::Always,
            "names a provider other than `efa`: EFA is not used, and its counters do not move",
            "fine for a comparison; else remove it",
        ),
    ]),
    fi("FI_EFA_USE_DEVICE_RDMA", Switch).said(&[
        note(Held::On, SETTLED, NOT_NEEDED, TAKE_OUT),
        warn(
            Held::Off,
            When::Always,
            "turns RDMA of the device off: all data goes by send and receive through the hosts, and RDMA counters do not move",
            "fine for a comparison; else remove it",
        ),
    ]),
    fi("FI_EFA_FORK_SAFE", Switch).said(&[note(
        Held::On,
        When::Always,
        "is not needed: the plugin sets it where it matters, and from Linux 5.13 on it does nothing",
        TAKE_OUT,
    )]),
    fi("FI_EFA_ENABLE_SHM_TRANSFER", Switch).said(&[note(
        Held::On,
        SETTLED,
        "is not needed: under NCCL the provider's own shared memory is off",
        TAKE_OUT,
    )]),
    fi("FI_EFA_USE_HUGE_PAGE", Switch),
    fi("FI_EFA_MTU_SIZE", SIZE).gone(ENDS, TAKE_OUT),
    fi("FI_EFA_TX_IOV_LIMIT", SIZE).gone(ENDS, TAKE_OUT),
    fi("FI_EFA_RX_IOV_LIMIT", SIZE).gone(ENDS, TAKE_OUT),
    fi("FI_EFA_SET_CUDA_SYNC_MEMOPS", Switch).gone("is not read by current releases", TAKE_OUT),
    fi("FI_EFA_SHM_MAX_MEDIUM_SIZE", SIZE).gone("is not read by current releases", TAKE_OUT),
    fi("FI_EFA_TX_MIN_CREDITS", Number(1, i64::MAX)).fatal(),
    fi("FI_EFA_IFACE", Something).fatal(),
    fi("FI_EFA_TX_SIZE", SIZE),
    fi("FI_EFA_RX_SIZE", SIZE),
    fi("FI_EFA_TX_QUEUE_SIZE", SIZE),
    fi("FI_EFA_RX_WINDOW_SIZE", SIZE),
    fi("FI_EFA_RECVWIN_SIZE", SIZE),
    fi("FI_EFA_CQ_SIZE", SIZE),
    fi("FI_EFA_MR_CACHE_ENABLE", Switch),
    fi("FI_EFA_MR_MAX_CACHED_COUNT", SIZE),
    fi("FI_EFA_MR_MAX_CACHED_SIZE", SIZE),
    fi("FI_EFA_MAX_MEMCPY_SIZE", SIZE),
    fi("FI_EFA_RX_COPY_UNEXP", Switch),
    fi("FI_EFA_RX_COPY_OOO", Switch),
    fi("FI_EFA_MAX_TIMEOUT", SIZE),
    fi("FI_EFA_TIMEOUT_INTERVAL", SIZE),
    fi("FI_EFA_EFA_CQ_READ_SIZE", SIZE),
    fi("FI_EFA_SHM_CQ_READ_SIZE", SIZE),
    fi("FI_EFA_SHM_AV_SIZE", SIZE),
    fi("FI_EFA_READCOPY_POOL_SIZE", SIZE),
    fi("FI_EFA_ATOMRSP_POOL_SIZE", SIZE),
    fi("FI_EFA_USE_ZCPY_RX", Switch),
    fi("FI_EFA_ZCPY_RX_SEED", SIZE),
    fi("FI_EFA_USE_SM2", Switch),
    fi("FI_EFA_USE_UNSOLICITED_WRITE_RECV", Switch),
    fi("FI_EFA_DIRECT_CQ_OPS", Switch),
    fi("FI_EFA_INTERNAL_RX_REFILL_THRESHOLD", SIZE),
    fi("FI_EFA_INTER_MAX_MEDIUM_MESSAGE_SIZE", SIZE),
    fi("FI_EFA_INTER_MIN_READ_MESSAGE_SIZE", SIZE),
    fi("FI_EFA_INTER_MAX_GDRCOPY_MESSAGE_SIZE", SIZE),
    fi("FI_EFA_INTER_MIN_READ_WRITE_SIZE", SIZE),
    fi("FI_EFA_INTER_READ_SEGMENT_SIZE", SIZE),
    fi("FI_EFA_RUNT_SIZE", SIZE),
    fi("FI_LOG_LEVEL", OneOf(&["warn", "trace", "info", "debug"])),
    fi("FI_LOG_PROV", Something),
    fi("FI_LOG_SUBSYS", Something),
    fi("FI_PROVIDER_PATH", Something),
    fi("FI_UNIVERSE_SIZE", SIZE),
    fi("FI_HOOK", Something),
    fi("FI_HMEM", Something),
    fi("FI_HMEM_CUDA_USE_GDRCOPY", Switch),
    fi("FI_HMEM_CUDA_ENABLE_XFER", Switch),
    fi("FI_HMEM_CUDA_USE_DMABUF", Switch),
    fi("FI_HMEM_DISABLE_P2P", Switch),
    fi("FI_FORK_UNSAFE", Switch),
    fi("FI_MR_CACHE_MAX_SIZE", SIZE),
    fi("FI_MR_CACHE_MAX_COUNT", SIZE),
    fi("FI_MR_CACHE_MONITOR", Something),
    fi("FI_MR_CUDA_CACHE_MONITOR_ENABLED", Switch),
    fi("FI_AV_REMOVE_CLEANUP", Switch),
];
