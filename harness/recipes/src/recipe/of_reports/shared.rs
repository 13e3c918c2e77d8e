//! Shared reading of one report by several recipes: how much of it may be kept, and which recipes still need which
//! table. `nsys::export` keeps the columns.

use super::{CHARTS, ReportRecipe, diff, group_of};
use crate::report::Arguments;
use nsys::tables::{META_DATA_EXPORT, MPI_RANKS, SESSION_START, STRING_IDS, SYSTEM_ENV};
use nsys::trace::{TIMED, Trace};
use std::collections::BTreeMap;

/// All open reports together keep no more columns than this.
pub(super) const ROOM: usize = 2 << 30;

/// Small tables that are read beside recipes, too.
const OF_ALL: [&str; 4] = [META_DATA_EXPORT.name, MPI_RANKS.name, SESSION_START.name, SYSTEM_ENV.name];

/// By table how many of these recipes read it. Strings are kept by the report itself.
pub(super) fn readers(
    recipes: &[(ReportRecipe<'_>, Arguments)],
    trace: &Trace,
) -> BTreeMap<&'static str, usize> {
    let mut readers: BTreeMap<&'static str, usize> = OF_ALL.iter().map(|name| (*name, 1)).collect();
    for (recipe, arguments) in recipes {
        for spec in diff::summary_of(*recipe, arguments).tables {
            *readers.entry(spec.name).or_default() += 1;
        }
    }
    // Recipes over time read all tables once for the time span of the report.
    let over_time = |recipe: &ReportRecipe| group_of(recipe.name) == Some(CHARTS);
    if !trace.knows_recorded() && recipes.iter().any(|(recipe, _)| over_time(recipe)) {
        for spec in TIMED {
            *readers.entry(spec.name).or_default() += 1;
        }
    }
    readers.remove(STRING_IDS.name);
    readers
}

#[cfg(test)]
mod tests {
    use super::super::survey::decoded;
    use super::super::tests::inputs;
    use super::super::{COMPOSITE, LIST, Survey};
    use super::*;
    use crate::testing::Made;
    use nsys::export::Decoded;

    /// Kernels with their calls in ranges of steps, those of NCCL too.
    fn made() -> Made {
        let made = Made::begin();
        made.string(1, "cudaLaunchKernel_v7000").string(2, "void gemm<float>(int)").string(3, "gemm");
        made.string(4, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)")
            .string(5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
        for step in 0..4 {
            let at = step * 1000;
            made.range((at, at + 900), 3, "step");
            for (kernel, name) in [2, 4, 2].into_iter().enumerate() {
                let at = at + 100 * kernel as i64;
                made.call((at + 5, at + 20), 3, at, 1).kernel((at + 30, at + 95), at, name);
            }
            made.fill((at + 400, at + 410), at + 7);
        }
        made
    }

    fn decoded_by(
        made: &Made,
        asked: &[(ReportRecipe<'static>, Arguments)],
    ) -> BTreeMap<&'static str, Decoded> {
        let inputs = inputs(vec![made.path()]);
        let survey = Survey { asked, inputs: &inputs, filter: None, jobs: 1, progress: &|_| {} };
        decoded(&survey, &inputs[0])
    }

    #[test]
    fn every_recipe_together_decodes_each_column_of_a_report_once() {
        let made = made();
        let asked = || LIST.iter().map(|recipe| (*recipe, Arguments::default()));
        let short = asked().filter(|(recipe, _)| group_of(recipe.name) != Some(COMPOSITE));
        for asked in [asked().collect::<Vec<_>>(), short.collect()] {
            let decoded = decoded_by(&made, &asked);
            for (table, of) in &decoded {
                let twice: Vec<_> = of.columns.iter().filter(|(_, times)| **times > 1).collect();
                assert!(twice.is_empty(), "{table}: {twice:?}");
                // Texts that only some recipes need are not read ahead of them.
                assert!(of.passes <= 3, "{table}: {} passes", of.passes);
            }
            assert!(decoded.len() > 10, "{}", decoded.len());
        }
    }

    #[test]
    fn recipes_read_the_tables_that_they_declare() {
        let made = made();
        let timed = TIMED.map(|spec| spec.name);
        let mut silent = Vec::new();
        for recipe in LIST {
            let arguments = Arguments::default();
            let declared = diff::summary_of(*recipe, &arguments).tables.iter().map(|spec| spec.name);
            let mut known: Vec<&str> = declared.chain(OF_ALL).chain([STRING_IDS.name]).collect();
            if group_of(recipe.name) == Some(CHARTS) {
                known.extend(timed);
            }
            let decoded = decoded_by(&made, &[(*recipe, arguments)]);
            let others = decoded.keys().filter(|name| !known.contains(name));
            silent.extend(others.map(|table| format!("`{}` does not declare `{table}`", recipe.name)));
        }
        assert!(silent.is_empty(), "{silent:#?}");
    }

    #[test]
    fn tables_are_awaited_as_long_as_a_recipe_that_reads_them_is_to_come() {
        let of = |name: &str| {
            let at = LIST.iter().position(|recipe| recipe.name == name).expect("there");
            (LIST[at], Arguments::default())
        };
        let recipes = [of("cuda_gpu_kern_sum"), of("cuda_api_sum"), of("CUDA_KERNEL")];
        let trace = made().trace();
        let awaited = |from: usize| readers(&recipes[from..], &trace);
        assert_eq!(awaited(0).get("CUPTI_ACTIVITY_KIND_KERNEL"), Some(&2));
        assert_eq!(awaited(2).get("CUPTI_ACTIVITY_KIND_KERNEL"), Some(&1));
        assert!(awaited(0).contains_key("CUPTI_ACTIVITY_KIND_RUNTIME"));
        assert!(!awaited(2).contains_key("CUPTI_ACTIVITY_KIND_RUNTIME"));
        assert!(!awaited(0).contains_key("StringIds"), "those are kept by the report itself");
        let map = [of("cuda_gpu_time_util_map")];
        assert!(readers(&map, &trace).contains_key("OSRT_API"), "when was it recorded");
        trace.recorded();
        assert!(!readers(&map, &trace).contains_key("OSRT_API"));
    }
}
