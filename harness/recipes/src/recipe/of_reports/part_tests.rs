//! Reports that several processes read, each some of them: what comes of it is what comes of one that reads them all.

use super::tests::inputs;
use super::*;
use crate::testing::Made as Report;
use nsys::trace::Filter;
use std::collections::BTreeMap;

/// The result of a survey, after checking that two processes with every other report each give the same.
#[track_caller]
pub(crate) fn both_ways(survey_of: &Survey) -> Vec<Outcome> {
    let whole = survey(survey_of).expect("threads");
    let shares = [1, 0].map(|odd| (0..survey_of.inputs.len()).filter(|at| at % 2 == odd).collect::<Vec<_>>());
    let parts = shares.map(|share| sent(survey_of, &share));
    let joined = join(survey_of, parts.into_iter().collect(), &BTreeMap::new());
    assert_eq!(format!("{joined:#?}"), format!("{whole:#?}"));
    whole
}

/// Read, written and read back.
#[track_caller]
fn sent(survey: &Survey, share: &[usize]) -> Part {
    let part = part(survey, share).expect("threads");
    assert!(part.reports().eq(share.iter().copied()));
    let bytes = part.to_bytes(survey.asked).expect("written");
    Part::from_bytes(survey.asked, &bytes).expect("read back")
}

/// Kernels with their calls in ranges of steps, those of NCCL too, `slower` than in the others.
fn made(slower: i64) -> Report {
    let made = Report::begin();
    made.string(1, "cudaLaunchKernel_v7000").string(2, "void gemm<float>(int)").string(3, "gemm");
    made.string(4, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)")
        .string(5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    for step in 0..4 {
        let at = step * 1000;
        made.range((at, at + 900), 3, "step");
        for (kernel, name) in [2, 4, 2].into_iter().enumerate() {
            let at = at + 100 * kernel as i64;
            made.call((at + 5, at + 20), 3, at, 1).kernel((at + 30, at + 95 + slower), at, name);
        }
        made.fill((at + 400, at + 410), at + 7);
    }
    made
}

fn asked() -> Vec<(ReportRecipe<'static>, Arguments)> {
    LIST.iter().map(|recipe| (*recipe, Arguments::default())).collect()
}

fn survey_of<'a>(asked: &'a [(ReportRecipe<'static>, Arguments)], inputs: &'a [Input]) -> Survey<'a> {
    Survey { asked, inputs, filter: None, jobs: 2, progress: &|_| {} }
}

#[test]
fn every_recipe_gives_the_same_of_reports_that_two_processes_read() {
    let (one, two, three) = (made(0), made(7), made(20));
    let gone = one.path().with_file_name("gone.sqlite");
    let inputs = inputs(vec![one.path(), two.path(), gone, three.path()]);
    let asked = asked();
    let outcomes = both_ways(&survey_of(&asked, &inputs));
    let with_data = outcomes.iter().filter(|outcome| !outcome.tables.is_empty()).count();
    assert!(with_data > 20, "{with_data}");
    assert!(outcomes.iter().all(|outcome| outcome.unreadable.iter().any(|(report, _)| report == "r2")));
    for (recipe, arguments) in asked {
        both_ways(&survey_of(&[(recipe, arguments)], &inputs));
    }
}

#[test]
fn a_filter_and_arguments_hold_in_every_process() {
    let (one, two) = (made(0), made(7));
    let inputs = inputs(vec![one.path(), two.path()]);
    let filters = ["500/2500", "step/1"];
    for (at, text) in filters.into_iter().enumerate() {
        let filter = match at {
            0 => Filter::Time(text.parse().expect("a span")),
            _ => Filter::Range(text.parse().expect("a range")),
        };
        let asked = asked();
        both_ways(&Survey { filter: Some(&filter), ..survey_of(&asked, &inputs) });
    }
    let with = |name: &str, word: &str| {
        let recipe = find(name).expect("there");
        (recipe, Arguments::read(name, recipe.arguments, &[word]).expect("an argument"))
    };
    let asked = [
        with("cuda_gpu_kern_pace", "like=gemm"),
        with("cuda_gpu_kern_hist", "name=none"),
        with("breakdown", "step=step"),
        with("nvtx_gpu_proj_trace", "compat"),
        with("kernel_classes", "compat"),
    ];
    both_ways(&survey_of(&asked, &inputs));
}

#[test]
fn a_report_that_was_not_read_is_named_by_every_recipe_and_is_in_no_table() {
    let (one, two) = (made(0), made(7));
    let inputs = inputs(vec![one.path(), two.path()]);
    let asked = asked();
    let survey_of = survey_of(&asked, &inputs);
    let lost = BTreeMap::from([(1, "its task was lost".to_owned())]);
    let joined = join(&survey_of, vec![sent(&survey_of, &[0])], &lost);
    for outcome in &joined {
        assert!(
            outcome.unreadable.contains(&("r1".to_owned(), "its task was lost".to_owned())),
            "{outcome:?}"
        );
    }
    let alone = survey(&Survey { inputs: &inputs[..1], ..survey_of }).expect("threads");
    for (joined, alone) in joined.iter().zip(&alone) {
        let but_files = |outcome: &Outcome| {
            let tables = outcome.tables.iter().filter(|(name, _)| *name != "files");
            format!("{:?}", tables.collect::<Vec<_>>())
        };
        assert_eq!(but_files(joined), but_files(alone), "{}", joined.recipe);
    }
    let none = join(&survey_of, Vec::new(), &BTreeMap::new());
    assert!(none.iter().all(|outcome| outcome.tables.is_empty() && outcome.unreadable.len() >= 2));
}

#[test]
fn bytes_that_are_cut_off_or_of_other_recipes_are_refused() {
    let one = made(0);
    let inputs = inputs(vec![one.path()]);
    let of = |name: &str| vec![(find(name).expect("there"), Arguments::default())];
    let (asked, other) = (of("breakdown"), of("cuda_gpu_kern_hist"));
    let survey_of = survey_of(&asked, &inputs);
    let bytes = part(&survey_of, &[0]).expect("threads").to_bytes(&asked).expect("written");
    let why =
        |asked: &[(ReportRecipe<'static>, Arguments)], bytes: &[u8]| Part::from_bytes(asked, bytes).err();
    assert_eq!(why(&asked, &bytes), None);
    for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        assert!(why(&asked, &bytes[..cut]).is_some(), "{cut}");
    }
    let both = [of("breakdown"), of("cuda_gpu_kern_hist")].concat();
    assert!(why(&both, &bytes).is_some_and(|why| why.contains("another number of recipes")));
    assert!(why(&other, &bytes).is_some_and(|why| why.contains("cuda_gpu_kern_hist")));
    assert!(why(&of("cuda_gpu_kern_sum"), &bytes).is_some_and(|why| why.contains("no extract of its own")));
}
