//! The class of a kernel, by its name. Names are split into words: `adam` is a word of `multi_tensor_adam`, and none
//! of `madamax`.

/// Every class, in the order in which they are asked; the first that a name fits counts.
pub const CLASSES: [&str; 8] =
    ["nccl", "comm", "gemm", "attention", "memory", "norm", "elementwise", "other"];

/// Whether kernels of this class move data between GPUs.
pub(crate) fn communicates(class: &str) -> bool {
    matches!(class, "nccl" | "comm")
}

/// By both names of a kernel. The short one lacks the namespace by which some communication is known, the whole one has
/// words of its arguments that say nothing of the kernel.
pub(crate) fn class_of_both(short: &str, whole: &str) -> &'static str {
    let class = class_of(short);
    if communicates(class) {
        return class;
    }
    // Without arguments and without the type before it: `void deep_ep::intranode::dispatch<8>(int*)`.
    let named = whole.split(['<', '(']).next().unwrap_or_default();
    let named = named.rsplit(' ').next().unwrap_or_default();
    let own = named.rsplit("::").next().unwrap_or_default();
    match class_of(own) {
        _ if named.split("::").any(|space| space == "deep_ep") => "comm",
        communication if communicates(communication) => communication,
        _ => class,
    }
}

/// The kernels by which nccl-tests communicate without a call of NCCL: through its interface for devices.
const OF_DEVICES: [&str; 5] =
    ["allreducelsa", "allreducemultimem", "nvlalltoall", "ginalltoall", "hybridalltoall"];

/// The first of `CLASSES` that a name fits; `other` where none does.
pub fn class_of(name: &str) -> &'static str {
    let lower = name.to_lowercase();
    let words = split_name(name);
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let begins =
        |wanted: &[&str]| words.iter().any(|word| wanted.iter().any(|start| word.starts_with(start)));
    // NCCL's own, the symmetric kernels of newer releases among them: all begin alike.
    if lower.starts_with("nccl") {
        return "nccl";
    }
    // Communication by others than NCCL: user buffers of transformer engines, expert parallelism, NVSHMEM.
    if begins(&["userbuffers", "kuserbuffers", "nvshmem", "nvshmemi", "deepep"])
        || (lower.contains("deep_ep") && has(&["dispatch", "combine", "notify"]))
        || OF_DEVICES.iter().any(|start| lower.starts_with(start))
    {
        return "comm";
    }
    if has(&["fmha", "mha", "flash", "attention", "attn", "sdpa"]) || begins(&["flashattn", "fmha"]) {
        return "attention";
    }
    if has(&["gemm", "gemmk1", "gemv", "xmma", "wgmma", "nvjet", "matmul"])
        || begins(&["gemm", "sgemm", "hgemm", "dgemm", "igemm", "gemv", "nvjet", "cutlass"])
        || words.iter().any(|word| word.ends_with("gemm") && word.len() <= 12)
    {
        return "gemm";
    }
    if has(&[
        "memcpy",
        "memset",
        "copy",
        "cat",
        "catarraybatchedcopy",
        "transpose",
        "gather",
        "scatter",
        "index",
    ]) || begins(&["catarray", "memcpy", "memset"])
    {
        return "memory";
    }
    if has(&["norm", "layernorm", "rmsnorm", "batchnorm", "softmax", "ln", "rms"])
        || begins(&["layernorm", "rmsnorm", "softmax", "cunn_softmax"])
    {
        return "norm";
    }
    if has(&[
        "elementwise",
        "pointwise",
        "vectorized",
        "unrolled",
        "relu",
        "gelu",
        "silu",
        "dropout",
        "adam",
        "foreach",
        "fill",
    ]) || begins(&["elementwise", "pointwise"])
        || lower.contains("multi_tensor_apply")
    {
        return "elementwise";
    }
    "other"
}

/// The kernels by which nccl-tests fill and check their buffers, of every era.
pub(crate) fn checks_buffers(name: &str) -> bool {
    let base = name.split(['<', '(']).next().unwrap_or(name).trim();
    // A demangled name has its type before it, and its namespace.
    let base = base.rsplit([' ', ':']).next().unwrap_or(base);
    [
        "verifyPrepared",
        "verifyInline",
        "prepareInput",
        "prepareExpected",
        "InitDataKernel",
        "InitDataReduceKernel",
        "deltaKern",
    ]
    .iter()
    .any(|own| base.starts_with(own))
}

/// `ampere_bf16_s16816gemm_128x128` is `ampere bf16 s16816gemm 128x128`; `CatArrayBatchedCopy` is one word and its parts.
fn split_name(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|run| !run.is_empty()) {
        words.push(run.to_lowercase());
        let mut part = String::new();
        let mut last_lower = false;
        for c in run.chars() {
            if c.is_ascii_uppercase() && last_lower {
                words.push(std::mem::take(&mut part));
            }
            last_lower = c.is_ascii_lowercase();
            part.push(c.to_ascii_lowercase());
        }
        if part.len() < run.len() {
            words.push(part);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_sorted_into_their_classes() {
        for (name, class) in [
            ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "nccl"),
            ("ncclKernel_AllGather_RING_LL_Sum_int8_t", "nccl"),
            ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16", "nccl"),
            ("ncclSymDevKernel_AllGather_LL", "nccl"),
            ("userbuffers_fp16_sum_inplace_gpu_rr_ag", "comm"),
            ("kuserbuffers_pushsendrecv", "comm"),
            ("nvshmemi_transfer_kernel", "comm"),
            ("allReduceLsaVectorizedKernel", "comm"),
            ("GinAlltoAllKernel", "comm"),
            ("prepareInput2", "other"),
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "gemm"),
            ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", "gemm"),
            ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "gemm"),
            ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu>", "gemm"),
            ("flash_fwd_kernel", "attention"),
            ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop", "attention"),
            ("fmha_v2_flash_attention_bf16_64_128_S_128", "attention"),
            ("CatArrayBatchedCopy_aligned16_contig", "memory"),
            ("direct_copy_kernel_cuda", "memory"),
            ("vectorized_elementwise_kernel", "elementwise"),
            ("multi_tensor_apply_kernel", "elementwise"),
            ("rmsnorm_fwd_tuned_kernel", "norm"),
            ("cunn_SoftMaxForward", "norm"),
            ("jacobi_kernel", "other"),
            // Parts of other words are no words.
            ("madamax_kernel", "other"),
            ("scattering_of_light", "other"),
            ("triton_poi_fused_add", "other"),
            ("", "other"),
        ] {
            assert_eq!(class_of(name), class, "{name}");
            assert!(CLASSES.contains(&class));
        }
    }

    #[test]
    fn a_namespace_makes_a_communication_kernel_and_an_argument_does_not() {
        for (short, whole, class) in [
            ("dispatch", "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", "comm"),
            (
                "cached_notify_combine",
                "void deep_ep::internode::cached_notify_combine<2>(void**, int*)",
                "comm",
            ),
            (
                "kernel",
                "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
                "nccl",
            ),
            ("put", "void my::nvshmemi_put<float>(float*)", "comm"),
            ("mine", "void mine<ncclDevComm>(ncclDevComm *, deep_ep::Buffer)", "other"),
            ("dispatch", "void other::dispatch<8>(int*)", "other"),
            ("copy_gemm", "", "gemm"),
            ("x", "void (anonymous namespace)::x()", "other"),
        ] {
            assert_eq!(class_of_both(short, whole), class, "{whole}");
        }
        let communicating: Vec<&str> = CLASSES.into_iter().filter(|class| communicates(class)).collect();
        assert_eq!(communicating, ["nccl", "comm"]);
    }

    #[test]
    fn the_kernels_of_the_tests_themselves_are_known() {
        for name in
            ["verifyPrepared", "prepareInput2", "void prepareExpected2<float>(int)", "deltaKern<float, 512>"]
        {
            assert!(checks_buffers(name), "{name}");
        }
        assert!(!checks_buffers("ncclDevKernel_SendRecv"));
    }
}
