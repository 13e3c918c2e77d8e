//! What stands beside NCCL and libfabric in the same scripts: variables of rdma-core, PyTorch's that once were called
//! like NCCL's, and those of nccl-tests.

use super::Holds::{Anything, Flag, Number};
use super::{Held, Holds, Library, Said, Variable, When, warn};

const VERBS: &str = "write nothing; `FI_EFA_FORK_SAFE=1` where Linux is older than 5.13";
const PAST_LIBFABRIC: &str =
    "configures rdma-core directly, bypassing libfabric, and breaks on newer kernels";

const NOT_TO_BE_SET: &[Said] = &[warn(Held::Any, When::Always, PAST_LIBFABRIC, VERBS)];

const fn verbs(name: &'static str) -> Variable {
    Variable::new(name, Library::RdmaCore, Anything).said(NOT_TO_BE_SET)
}

const fn torch(name: &'static str, advice: &'static str) -> Variable {
    Variable::new(name, Library::PyTorch, Anything).gone_from(2, 2, "has another name", advice)
}

const fn tests(name: &'static str, holds: Holds) -> Variable {
    Variable::new(name, Library::NcclTests, holds)
}

pub(super) const VARIABLES: &[Variable] = &[
    verbs("RDMAV_FORK_SAFE"),
    verbs("RDMAV_HUGEPAGES_SAFE"),
    verbs("RDMAV_ALLOW_DISASSOC_DESTROY"),
    verbs("IBV_FORK_SAFE"),
    torch("NCCL_ASYNC_ERROR_HANDLING", "write `TORCH_NCCL_ASYNC_ERROR_HANDLING`"),
    torch("NCCL_BLOCKING_WAIT", "write `TORCH_NCCL_BLOCKING_WAIT`"),
    torch("NCCL_DESYNC_DEBUG", "write `TORCH_NCCL_DESYNC_DEBUG`"),
    torch("NCCL_ENABLE_TIMING", "write `TORCH_NCCL_ENABLE_TIMING`"),
    torch("NCCL_USE_COMM_NONBLOCKING", "write `TORCH_NCCL_USE_COMM_NONBLOCKING`"),
    tests("NCCL_TESTS_MIN_BW", Anything),
    tests("NCCL_TESTS_SPLIT", Anything),
    tests("NCCL_TESTS_SPLIT_MASK", Anything),
    tests("NCCL_TESTS_DEVICE", Number(0, 1023)),
    tests("NCCL_TESTS_VERSION", Flag),
];
