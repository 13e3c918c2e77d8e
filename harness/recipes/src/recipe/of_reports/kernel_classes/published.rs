//! The kernel classes of a published script: by parts of whole names, case-insensitive, the first that fits. Its flaws
//! are kept: `adam` is in `madamax`, and symmetric kernels of NCCL fit no class.

pub(super) const CLASSES: [&str; 18] = [
    "NCCL AllGather",
    "NCCL ReduceScatter",
    "NCCL AllReduce",
    "NCCL SendRecv",
    "NCCL Other",
    "GEMM (Compute)",
    "Flash Attention",
    "Softmax",
    "Elementwise",
    "Reduction",
    "Memory Copy",
    "Optimizer",
    "Embedding",
    "Loss",
    "LayerNorm/RMSNorm",
    "Activation",
    "Triton",
    "Other",
];

/// Parts in small letters, of which one must be there; of two between `..` the second stands behind the first.
const PARTS: [&[&str]; 17] = [
    &["nccldevkernel_allgather"],
    &["nccldevkernel_reducescatter"],
    &["nccldevkernel_allreduce"],
    &["nccldevkernel_sendrecv"],
    &["nccldevkernel", "ncclkernel"],
    &["gemm"],
    &["flash..fwd", "flash..bwd", "flash..kernel"],
    &["softmax"],
    &["elementwise_kernel", "vectorized_elementwise"],
    &["reduce_kernel"],
    &["memcpy", "catarray"],
    &["multi_tensor_apply", "fusedadam", "adam"],
    &["indexselect", "embedding"],
    &["nll_loss", "cross_entropy"],
    &["layer_norm", "rms_norm", "layernorm", "rmsnorm"],
    &["silu", "gelu", "relu"],
    &["triton"],
];

pub(super) fn class_of(whole: &str) -> &'static str {
    let lower = whole.to_lowercase();
    let fits = |part: &&str| match part.split_once("..") {
        Some((first, second)) => lower.split_once(first).is_some_and(|(_, behind)| behind.contains(second)),
        None => lower.contains(part),
    };
    let at = PARTS.iter().position(|parts| parts.iter().any(&fits));
    CLASSES[at.unwrap_or(CLASSES.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_of_the_classes_that_the_script_gives_them() {
        for (name, class) in [
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm *)", "NCCL AllReduce"),
            ("ncclKernel_AllReduce_RING_LL_Sum_float", "NCCL Other"),
            ("ncclSymkDevKernel_AllReduce", "Other"),
            ("sm90_xmma_gemm_bf16_softmax", "GEMM (Compute)"),
            ("void flash_fwd_kernel<>", "Flash Attention"),
            ("fwd_flash", "Other"),
            ("cunn_SoftMaxForward", "Softmax"),
            ("at::native::reduce_kernel<512>", "Reduction"),
            ("CatArrayBatchedCopy", "Memory Copy"),
            ("madamax_kernel", "Optimizer"),
            ("triton_poi_fused_add", "Triton"),
            ("triton_fused_silu", "Activation"),
            ("nvjet_tst_192x192", "Other"),
        ] {
            assert_eq!(class_of(name), class, "{name}");
        }
    }
}
