//! What is proposed of runs whose numbers are known.

use super::*;
use metric::op::Op;
use recipes::catalogue::Catalogue;

fn number(subject: &str, size: u64, value: f64) -> Number {
    Number {
        metric: "nccl.busbw".to_owned(),
        unit: Unit::GigabytesPerSecond,
        better: Better::Higher,
        key: BaselineKey { op: Some(Op::AllReduce), size_bytes: Some(size), ..BaselineKey::default() },
        subject: subject.to_owned(),
        value,
        software: BTreeMap::from([("nccl".to_owned(), "2.27.7".to_owned())]),
    }
}

fn runs(n: u32) -> Vec<RunNumbers> {
    let values = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
    (0..n)
        .map(|at| {
            let level = values[at as usize % values.len()];
            let mut numbers: Vec<Number> =
                ["n1", "n2", "n3", "n4"].map(|node| number(node, 1 << 30, level)).into();
            numbers[2].value = level / 2.0;
            numbers.push(number("n[1-4]", 2 << 30, level * 2.0));
            numbers.push(number("n[1-4]", 4 << 30, f64::NAN));
            RunNumbers { id: format!("run-{at}"), numbers }
        })
        .collect()
}

fn origin() -> Origin {
    Origin { source: "x".to_owned(), date: None, judged: 3, simulated: false }
}

#[test]
fn one_sample_per_run_and_the_bad_node_is_named_and_left_out() {
    let proposed = propose(&runs(5), &[], &origin());
    assert_eq!(proposed.entries.len(), 2, "what was not measured is no baseline");
    let entry = &proposed.entries[0];
    assert_eq!(entry.samples, [100.0, 101.0, 99.0, 100.5, 99.5]);
    assert_eq!((entry.state, entry.runs.len()), (State::Accepted, 5));
    assert_eq!(entry.fingerprint["nccl"], ["2.27.7"]);
    let (lower, upper) = (entry.lower.expect("lower"), entry.upper.expect("upper"));
    assert!((80.0..96.0).contains(&lower) && (104.0..125.0).contains(&upper), "{lower} {upper}");
    assert_eq!(entry.spread.map(|spread| (spread.relative, spread.judged)), Some((0.02, FEWEST_JUDGED)));
    let nodes: Vec<&str> = proposed.left_out.iter().map(|left| left.subject.as_str()).collect();
    assert_eq!(nodes, ["n3"; 5]);
    assert_eq!((proposed.left_out[0].value, proposed.left_out[0].middle), (50.0, 100.0));
}

#[test]
fn few_runs_make_provisional_baselines_and_one_has_no_bounds() {
    let state = |n| propose(&runs(n), &[], &origin()).entries[1].state;
    assert_eq!([1, 4, 5].map(state), [State::Provisional, State::Provisional, State::Accepted]);
    let one = &propose(&runs(1), &[], &origin()).entries[1];
    assert_eq!((one.lower, one.upper, one.spread), (None, None, None));
    assert_eq!(propose(&[], &[], &origin()), Proposed::default());
}

#[test]
fn what_is_proposed_reads_back_as_a_file() {
    let entries = propose(&runs(6), &[], &origin()).entries;
    let pending = super::super::Baselines {
        entries,
        ..super::super::Baselines::none("p5", false, "baselines/p5.pending.toml")
    };
    let text = pending.render();
    let read = super::super::Baselines::read(&text, "baselines/p5.pending.toml", &Catalogue::built_in());
    assert_eq!(read.map(|read| read.render()), Ok(text));
}

#[test]
fn software_that_one_run_does_not_report_is_in_no_fingerprint_and_listed() {
    let mut runs = runs(5);
    for (at, run) in runs.iter_mut().enumerate() {
        for number in &mut run.numbers {
            number.software.insert("libfabric".to_owned(), "1.22".to_owned());
            if at != 2 {
                number.software.insert("driver".to_owned(), "560.35".to_owned());
            }
        }
    }
    let proposed = propose(&runs, &[], &origin());
    assert_eq!(proposed.partly_reported, BTreeSet::from(["driver".to_owned()]));
    for entry in &proposed.entries {
        assert_eq!(entry.fingerprint.keys().collect::<Vec<_>>(), ["libfabric", "nccl"], "{entry:?}");
    }
}
