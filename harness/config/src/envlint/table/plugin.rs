//! What aws-ofi-nccl reads.

use super::Holds::{Anything, Number, OneOf, Something, Switch};
use super::{Held, Holds, Library, Variable, When, note};
use crate::inventory::Transport;

const fn ofi(name: &'static str, holds: Holds) -> Variable {
    Variable::new(name, Library::Plugin, holds)
}

const SIZE: Holds = Number(0, i64::MAX);
const BUFFERS: &str = "write `OFI_NCCL_RDMA_MIN_POSTED_EAGER_BUFFERS`, or the same of `MAX` or `CONTROL`";

pub(super) const VARIABLES: &[Variable] = &[
    ofi("OFI_NCCL_PROTOCOL", OneOf(&["SENDRECV", "RDMA"])).said(&[
        note(
            Held::Word("RDMA"),
            When::On(Transport::Rdma),
            "says what this instance has anyway",
            "remove it",
        ),
        note(
            Held::Word("SENDRECV"),
            When::On(Transport::Sendrecv),
            "says what this instance has anyway",
            "remove it",
        ),
    ]),
    ofi("OFI_NCCL_USE_IPV6_TCP", Switch),
    ofi("OFI_NCCL_EXCLUDE_TCP_IF", Something),
    ofi("OFI_NCCL_GDR_FLUSH_DISABLE", Switch),
    ofi("OFI_NCCL_CUDA_FLUSH_ENABLE", Switch),
    ofi("OFI_NCCL_NIC_DUP_CONNS", SIZE),
    ofi("OFI_NCCL_MR_KEY_SIZE", SIZE),
    ofi("OFI_NCCL_MR_CACHE_DISABLE", Switch),
    ofi("OFI_NCCL_CQ_READ_COUNT", SIZE),
    ofi("OFI_NCCL_CQ_SIZE", SIZE),
    ofi("OFI_NCCL_DISABLE_NATIVE_RDMA_CHECK", Switch),
    ofi("OFI_NCCL_DISABLE_GDR_REQUIRED_CHECK", Switch),
    ofi("OFI_NCCL_DISABLE_DMABUF", Switch),
    ofi("OFI_NCCL_MIN_STRIPE_SIZE", SIZE),
    ofi("OFI_NCCL_ROUND_ROBIN_THRESHOLD", SIZE)
        .gone("has another name in current releases", "write `OFI_NCCL_MIN_STRIPE_SIZE`"),
    ofi("OFI_NCCL_SCHED_MAX_SMALL_RR_SIZE", SIZE),
    ofi("OFI_NCCL_RDMA_MIN_POSTED_BOUNCE_BUFFERS", SIZE).gone("is not read by current releases", BUFFERS),
    ofi("OFI_NCCL_RDMA_MAX_POSTED_BOUNCE_BUFFERS", SIZE).gone("is not read by current releases", BUFFERS),
    ofi("OFI_NCCL_RDMA_MIN_POSTED_EAGER_BUFFERS", SIZE),
    ofi("OFI_NCCL_RDMA_MAX_POSTED_EAGER_BUFFERS", SIZE),
    ofi("OFI_NCCL_RDMA_MIN_POSTED_CONTROL_BUFFERS", SIZE),
    ofi("OFI_NCCL_RDMA_MAX_POSTED_CONTROL_BUFFERS", SIZE),
    ofi("OFI_NCCL_RR_CTRL_MSG", Switch),
    ofi("OFI_NCCL_NET_LATENCY", Anything),
    ofi("OFI_NCCL_EAGER_MAX_SIZE", Number(-1, i64::MAX)),
    ofi("OFI_NCCL_ERRORCHECK_MUTEX", Switch),
    ofi("OFI_NCCL_ENDPOINT_PER_COMM", Switch).gone("is not read by current releases", "remove it"),
    ofi("OFI_NCCL_DOMAIN_PER_THREAD", Switch),
    ofi("OFI_NCCL_ABORT_ON_ERROR", Switch),
    ofi("OFI_NCCL_TUNER_TYPE", OneOf(&["INTERNAL", "REGION", "MODEL"])),
    ofi("OFI_NCCL_TUNER_NUM_CHANNELS", SIZE),
    ofi("OFI_NCCL_TUNER_NET_LATENCY", SIZE),
    ofi("OFI_NCCL_TUNER_NET_COMP_OVERHEAD", SIZE),
    ofi("OFI_NCCL_USE_LOW_LATENCY_TC", Switch),
    ofi("OFI_NCCL_FORCE_NUM_RAILS", SIZE),
    ofi("OFI_NCCL_EARLY_COMPLETION", Switch),
    ofi("OFI_NCCL_DISABLE_CLOSE_MESSAGE", Switch),
    ofi("OFI_NCCL_SKIP_NICS_WITHOUT_ACCEL_AT_SAME_PCI_LEVEL", Switch),
    ofi("OFI_NCCL_CM_NUM_RX_BUFFERS", SIZE),
    ofi("OFI_NCCL_PROGRESS_MODEL", OneOf(&["UNSPEC", "AUTO", "MANUAL"])),
    ofi("OFI_NCCL_PLATFORM", Anything),
    ofi("OFI_NCCL_NVTX_TRACE_DIMENSION", OneOf(&["PER_COMM", "PER_DEV"])).since(1, 18),
    ofi("OFI_NCCL_GDAKI_EFA_HW_COUNTER", OneOf(&["AUTO", "ON", "OFF"])),
    ofi("OFI_NCCL_GIN_GDAKI", Switch),
    ofi("OFI_NCCL_GIN_MAX_REQUESTS", SIZE),
    ofi("OFI_NCCL_GIN_CQ_PROCESS_MAX_ITER", SIZE),
    ofi("OFI_NCCL_TOPO_FILE_TEMPLATE", Anything),
];
