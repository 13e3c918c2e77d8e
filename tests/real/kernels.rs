//! Real exports of foreign reports, where they lie beside the project: the time of each kernel is what a
//! second, independent implementation makes of the same files.

use crate::corpus::export;
use crate::fact::Fact;
use nsys::export::Export;
use nsys::trace::Trace;
use recipes::figures::Stats;
use recipes::kernel_class::{CLASSES, class_of};
use recipes::recipe::cuda_gpu_kern_sum::durations;
use recipes::steps::{Source, StepRequest, find_in_trace};
use std::collections::BTreeSet;

pub(crate) const FACTS: &[Fact] = &[
    (
        "the_time_of_each_kernel_is_that_of_a_second_implementation",
        the_time_of_each_kernel_is_that_of_a_second_implementation,
    ),
    ("an_export_without_kernels_has_none", an_export_without_kernels_has_none),
    ("the_kernels_of_a_training_step_have_their_classes", the_kernels_of_a_training_step_have_their_classes),
    (
        "the_order_of_kernels_reports_the_steps_of_a_run_whose_ranges_do_not",
        the_order_of_kernels_reports_the_steps_of_a_run_whose_ranges_do_not,
    ),
];

/// File, kernel, total, runs, mean, median, least, most, deviation: in nanoseconds, rounded to a tenth.
type Figures = (&'static str, &'static str, u128, u64, f64, f64, u64, u64, f64);

#[rustfmt::skip]
const FIGURES: &[Figures] = &[
    ("gh200-jacobi", "jacobi_kernel", 2071927531, 1000, 2071927.5, 2075488.0, 2063968, 2077088, 4972.0),
    ("gh200-jacobi", "initialize_boundaries", 6016, 1, 6016.0, 6016.0, 6016, 6016, 0.0),
    ("h100-2gpu-mfu-before", "flash_fwd_kernel", 272317378, 68, 4004667.3, 3977582.0, 150752, 7867915, 3878677.8),
    ("h100-2gpu-mfu-before", "elementwise_kernel", 86870224, 871, 99736.2, 82175.0, 3584, 212639, 53400.2),
    ("h100-2gpu-mfu-before", "vectorized_elementwise_kernel", 43723542, 1861, 23494.6, 2080.0, 1312, 188992, 39552.3),
    ("h100-2gpu-mfu-before", "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", 38226009, 235, 162663.9, 102080.0, 97696, 527903, 149280.3),
    ("h100-2gpu-mfu-before", "unrolled_elementwise_kernel", 30512621, 506, 60301.6, 75632.0, 1728, 149952, 52139.3),
    ("h100-2gpu-mfu-before", "ncclDevKernel_SendRecv", 25401752, 66, 384875.0, 168208.0, 89440, 3603569, 633670.6),
    ("h100-2gpu-mfu-before", "nvjet_tst_192x208_64x4_1x1_h_bz_coopB_bias_TNT", 19002431, 34, 558895.0, 559391.0, 554496, 561950, 1763.0),
    ("h100-2gpu-mfu-before", "vectorized_layer_norm_kernel", 7587637, 102, 74388.6, 74400.0, 73280, 75872, 553.8),
    ("h100-2gpu-mfu-before", "CatArrayBatchedCopy_vectorized", 6432920, 65, 98968.0, 96864.0, 94303, 114272, 4807.7),
    ("h100-2gpu-mfu-before", "reduce_kernel", 4555000, 134, 33992.5, 43136.0, 5408, 48576, 16667.2),
    ("h100-2gpu-mfu-before", "nvjet_tst_96x64_64x10_1x2_h_bz_bias_TNN", 571136, 68, 8399.1, 8384.0, 7840, 9600, 350.2),
    ("rtx3080-mock", "reduce_kernel", 2689, 1, 2689.0, 2689.0, 2689, 2689, 0.0),
    ("rtx3080-mock", "vectorized_elementwise_kernel", 1440, 1, 1440.0, 1440.0, 1440, 1440, 0.0),
    ("saxpy-mpi-schema-2.9.1", "saxpy", 88573480, 5, 17714696.0, 17713960.0, 17700808, 17733416, 12992.1),
];

fn the_time_of_each_kernel_is_that_of_a_second_implementation() {
    let files: BTreeSet<&str> = FIGURES.iter().map(|figures| figures.0).collect();
    for name in files {
        let path = export(name);
        let export = Export::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let kernels = durations(&export).expect(name).unwrap_or_else(|why| panic!("{name}: {why}"));
        let expected: Vec<&Figures> = FIGURES.iter().filter(|figures| figures.0 == name).collect();
        assert_eq!(kernels.len(), expected.len(), "{name}");
        let all: u128 = kernels.values().flatten().map(|ns| u128::from(*ns)).sum();
        let sum: u128 = expected.iter().map(|figures| figures.2).sum();
        assert_eq!(all, sum, "{name}: equal totals give equal shares");
        for (_, kernel, total, count, mean, median, min, max, stddev) in expected {
            let stats = Stats::from_values(&kernels[*kernel]).expect("it ran");
            assert_eq!(
                (stats.total, stats.count, stats.min, stats.max),
                (*total, *count, *min, *max),
                "{name}: {kernel}"
            );
            for (own, other) in [(stats.mean, mean), (stats.median, median), (stats.stddev, stddev)] {
                assert!((own - other).abs() <= 0.0501, "{name}: {kernel}: {own} and {other}");
            }
        }
    }
}

fn an_export_without_kernels_has_none() {
    let path = export("rtx4060-no-kernel-table");
    let export = Export::open(&path).expect("opens");
    assert!(durations(&export).expect("read").expect("sound").is_empty());
}

fn the_kernels_of_a_training_step_have_their_classes() {
    let path = export("h100-2gpu-mfu-before");
    let export = Export::open(&path).expect("opens");
    let kernels = durations(&export).expect("read").expect("sound");
    let classes: BTreeSet<&str> = kernels.keys().map(|name| class_of(name)).collect();
    for class in ["nccl", "gemm", "attention", "elementwise", "memory", "norm"] {
        assert!(classes.contains(class), "{class}: {classes:?}");
    }
    assert!(classes.iter().all(|class| CLASSES.contains(class)));
    let time = |class: &str| -> u128 {
        let of_class = kernels.iter().filter(|(name, _)| class_of(name) == class);
        of_class.flat_map(|(_, durations)| durations).map(|ns| u128::from(*ns)).sum()
    };
    assert_eq!(time("nccl"), 25_401_752);
}

fn the_order_of_kernels_reports_the_steps_of_a_run_whose_ranges_do_not() {
    // By counting: on the busiest stream the first kernel ran 17 times, so that 16 steps have an end; the ranges of this
    // run are numbered by calls. The other run is a loop of one kernel behind another one.
    // No pause separates the steps of the first: layers could repeat like that, so its confidence is halved.
    for (name, kernel, steps, confidence) in [
        ("h100-2gpu-mfu-before", "nvjet_tst_192x208_64x4_1x1_h_bz_coopB_bias_TNT", 16, 0.475),
        ("gh200-jacobi", "jacobi_kernel", 999, 0.95),
    ] {
        let path = export(name);
        let trace = Trace::open(&path).expect("opens");
        let found = find_in_trace(&trace, &StepRequest::default()).expect("read").expect("steps");
        let ended = found.steps.iter().filter(|step| step.has_end && step.is_whole()).count();
        assert_eq!((found.source, found.by.as_str(), ended), (Source::Kernels, kernel, steps));
        let most = if confidence < 0.5 { 0.5 } else { 1.0 };
        assert!((confidence..=most).contains(&found.confidence), "{name}: {}", found.confidence);
    }
}
