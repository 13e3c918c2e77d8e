//! Reading of baselines, the errors of wrong ones, and that what is written is read back the same.

use super::*;
use crate::schema_tests::agreement;
use fixture::schema::Agreement;
use proptest::prelude::*;
use recipes::catalogue::Catalogue;

#[test]
fn every_error_of_baselines_is_reported_in_one_go() {
    let text = r#"
instance = "p5"
simulated = true
[[baseline]]
metric = "nccl.buswb"
unit = "GB/sec"
state = "acepted"
samples = []
[[baseline]]
metric = "nccl.busbw"
op = "all_reduce"
size = "1GiB"
nodes = 2
unit = "us"
better = "lower"
state = "accepted"
samples = [437.0, nan]
lower = 500
source = "x"
[[baseline]]
metric = "nic.rate"
unit = "GB/s"
state = "accepted"
samples = [11.9, 11.8]
lower = 12
upper = 11
source = "x"
[[baseline]]
metric = "nic.rate"
unit = "GB/s"
state = "provisional"
samples = [11.9]
source = "x"
[[baseline]]
metric = "nccl.time"
spread = 0.02
quantiles = [1, 3, 2, 4]
fingerprint = { nccl = [], driver = 7 }
unit = "us"
state = "provisional"
samples = [-1]
source = ""
"#;
    let read = Baselines::read(text, "baselines/p5.toml", &Catalogue::built_in());
    assert_eq!(agreement("baselines", text, &read), Agreement::WrongInForm);
    let diagnostics = read.expect_err("bad");
    insta::assert_snapshot!(diagnostics.to_string());
}

#[test]
fn a_median_is_the_middle_of_the_samples() {
    let text = |samples: &str| {
        format!(
            "instance = \"p5\"\n[[baseline]]\nmetric = \"nic.rate\"\nunit = \"GB/s\"\nstate = \"provisional\"\n\
             source = \"x\"\nsamples = {samples}\n"
        )
    };
    for (samples, median) in [("[3, 1, 2]", 2.0), ("[4.0, 1.0]", 2.5), ("[7]", 7.0)] {
        let baselines = Baselines::read(&text(samples), "p5.toml", &Catalogue::built_in()).expect("good");
        assert_eq!(baselines.entries[0].median(), median);
    }
}

fn entry() -> impl Strategy<Value = Baseline> {
    let key = (0usize..10, 1u64..u64::MAX, prop::option::of(1u32..600), prop::option::of(1u32..9));
    let words = prop::option::of("[\\PC\"\\\\]{0,12}x");
    let samples = prop::collection::vec(0.0f64..1e12, 5..9);
    (key, words, samples, any::<bool>()).prop_map(|((op, size, nodes, ranks), words, samples, accepted)| {
        Baseline {
            metric: "nccl.busbw".to_owned(),
            key: BaselineKey {
                op: Some(Op::ALL[op]),
                size_bytes: Some(size),
                nodes,
                ranks,
                training: words.clone(),
                dtype: words.clone(),
                ..BaselineKey::default()
            },
            unit: Unit::GigabytesPerSecond,
            better: Better::Higher,
            state: if accepted { State::Accepted } else { State::Expired },
            lower: samples.iter().copied().reduce(f64::min),
            upper: None,
            floor: (!accepted).then_some(0.0),
            floor_source: (!accepted).then(|| "60 % of it".to_owned()),
            spread: accepted.then(|| BaselineSpread { relative: 0.01, freedom: samples[0], judged: 7 }),
            pack: None,
            quantiles: Some([samples[0]; 4]),
            fingerprint: words
                .iter()
                .map(|word| (word.clone(), vec![word.clone(), "2.18".to_owned()]))
                .chain([("nccl".to_owned(), vec!["2.27.7".to_owned()])])
                .collect(),
            runs: vec!["20260101T000000Z-a-0001".to_owned()],
            samples,
            source: words.clone().unwrap_or("a run".to_owned()),
            accepted_by: words.clone(),
            rejected_by: None,
            reason: None,
            date: words,
            simulated: true,
            line: 0,
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_the_same(entries in prop::collection::vec(entry(), 0..6)) {
        let mut entries = entries;
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        entries.dedup_by(|a, b| a.key == b.key);
        let mut written = Baselines { instance: "sim-p5".to_owned(), simulated: true, between_sizes: true, entries, file: "sim-p5.toml".to_owned() };
        let text = written.render();
        let read = Baselines::read(&text, "sim-p5.toml", &Catalogue::built_in());
        let read = read.map_err(|errors| TestCaseError::fail(errors.to_string()))?;
        prop_assert_eq!(read.render(), text);
        for (entry, read) in written.entries.iter_mut().zip(&read.entries) {
            entry.line = read.line;
        }
        prop_assert_eq!(read, written);
    }
}
