//! Sets of recipes that are requested under one name. Add a set by its entry in `SETS`.

/// Words as a person would write them, one recipe each.
pub(super) struct SetSpec {
    pub name: &'static str,
    pub about: &'static str,
    pub recipes: &'static [&'static str],
}

pub(super) const SETS: &[SetSpec] = &[SetSpec {
    name: "seed-2024",
    about: "what a published script of 2024 runs over a training job on p5, the kernels of its paces found by name",
    recipes: &[
        "cuda_api_sum",
        "cuda_api_sync",
        "cuda_gpu_kern_pace:like=ReduceScatter",
        "cuda_gpu_kern_pace:like=AllGather",
        "cuda_gpu_kern_sum",
        "cuda_gpu_mem_size_sum",
        "cuda_gpu_mem_time_sum",
        "cuda_gpu_time_util_map",
        "nccl_sum",
        "nccl_gpu_time_util_map",
    ],
}];

pub(super) fn find(name: &str) -> Option<&'static SetSpec> {
    SETS.iter().find(|set| set.name == name)
}
