//! The order and groups in which recipes over reports are listed. A new recipe needs its line here, too.

/// Recipes of one kind, by name.
pub struct Group {
    /// Heading in the list: `Summaries`.
    pub title: &'static str,
    /// Their common property, in one line.
    pub about: &'static str,
    /// In the order in which they are listed.
    pub recipes: &'static [&'static str],
}

/// The last one: as long as the reports themselves, so only given on request.
pub const COMPOSITE: &str = "Composite tables";

/// Recipes over time, and distributions.
pub(crate) const CHARTS: &str = "Charts";

/// Every recipe of `LIST` once, as `harness recipe list` shows them.
pub const GROUPS: &[Group] = &[
    Group {
        title: "Summaries",
        about: "figures per name, of all reports together and of each",
        recipes: &[
            "cuda_api_sum",
            "cuda_gpu_kern_sum",
            "cuda_gpu_mem_size_sum",
            "cuda_gpu_mem_time_sum",
            "cuda_kern_exec_sum",
            "mpi_sum",
            "nccl_gpu_proj_sum",
            "nccl_sum",
            "network_sum",
            "nvlink_sum",
            "nvtx_gpu_proj_sum",
            "nvtx_kern_sum",
            "nvtx_sum",
            "osrt_sum",
        ],
    },
    Group {
        title: "Evidence",
        about: "what kept the GPUs busy, which ranks waited, and the messages of the profiler",
        recipes: &[
            "breakdown",
            "kernel_classes",
            "nccl_gpu_overlap_trace",
            "nccl_msg",
            "nvtx_gpu_proj_trace",
            "nvtx_unbalanced",
            "steps",
            "stragglers",
            "diff",
            "diagnostics",
        ],
    },
    Group {
        title: CHARTS,
        about: "utilisation over time, pace and spread",
        recipes: &[
            "cuda_gpu_kern_hist",
            "cuda_gpu_kern_pace",
            "cuda_gpu_time_util_map",
            "gpu_metric_util_map",
            "mpi_gpu_time_util_map",
            "nccl_gpu_time_util_map",
            "network_map_aws",
            "network_traffic_map",
            "nvtx_gpu_proj_pace",
            "nvtx_pace",
            "ucx_gpu_time_util_map",
        ],
    },
    Group {
        title: "Expert",
        about: "the faults that an expert checks first",
        recipes: &[
            "cuda_api_sync",
            "cuda_memcpy_async",
            "cuda_memcpy_sync",
            "cuda_memset_sync",
            "dx12_mem_ops",
            "gpu_gaps",
            "gpu_time_util",
        ],
    },
    Group {
        title: COMPOSITE,
        about: "row by row, with the names and columns that custom recipes refer to",
        recipes: &[
            "AWS_OFI_NCCL",
            "CUDA_COMBINED",
            "CUDA_COMBINED_KERNEL",
            "CUDA_GPU",
            "CUDA_GPU_GRAPH",
            "CUDA_KERNEL",
            "GENERIC",
            "GPU_METRICS",
            "IB_SWITCH",
            "MPI",
            "NCCL",
            "NIC",
            "NVTX",
            "UCX",
        ],
    },
];

/// The title of the group that a recipe belongs to.
pub fn group_of(recipe: &str) -> Option<&'static str> {
    GROUPS.iter().find(|group| group.recipes.contains(&recipe)).map(|group| group.title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::of_reports::{LIST, find};

    #[test]
    fn every_recipe_stands_in_one_group_and_every_name_in_a_group_is_a_recipe() {
        let named: Vec<&str> = GROUPS.iter().flat_map(|group| group.recipes).copied().collect();
        for recipe in LIST {
            let lines = named.iter().filter(|name| **name == recipe.name).count();
            assert_eq!(lines, 1, "`{}` needs its one line in `GROUPS`", recipe.name);
        }
        for name in named {
            assert!(find(name).is_some(), "`{name}` of `GROUPS` is no recipe");
        }
    }
}
