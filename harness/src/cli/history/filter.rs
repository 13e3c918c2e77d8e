//! Parses `--where`: dimensions of a metric, and a few other keys.

use base::suggest;
use config::toml_reader::quantity;
use metric::{Dim, DimValue, Dims};
use recipes::catalogue::Catalogue;
use std::collections::BTreeSet;
use verdict::history::past::Past;
use verdict::history::series::{self, SeriesRequest, is_of_samples};

/// The words that are no dimension, and the short one for a size.
const OTHERS: [&str; 4] = ["suite", "instance", "nodes", "size"];

pub(super) fn read(metric: &str, only: &[(String, String)]) -> Result<SeriesRequest, String> {
    let mut asked = SeriesRequest { metric: metric.to_owned(), ..SeriesRequest::default() };
    for (key, value) in only {
        let odd = |why: &str| format!("--where {key}: {why}: `{}`", value.escape_debug());
        match key.as_str() {
            "suite" => asked.suite = Some(value.clone()),
            "instance" => asked.instance = Some(value.clone()),
            "nodes" => asked.nodes = Some(value.parse().map_err(|_| odd("expected a number of nodes"))?),
            "size" | "size_bytes" => {
                asked.dims.set(Dim::SizeBytes, quantity::size(value).map_err(|why| odd(&why))?);
            }
            other => {
                let dim =
                    Dim::ALL.into_iter().find(|dim| dim.name() == other).ok_or_else(|| unknown(other))?;
                let value = match dim.is_number() {
                    true => DimValue::Number(value.parse().map_err(|_| odd("expected a whole number"))?),
                    false => DimValue::from(value.as_str()),
                };
                asked.dims.set(dim, value);
            }
        }
    }
    Ok(asked)
}

fn unknown(key: &str) -> String {
    let known: Vec<&str> = Dim::ALL.iter().map(|dim| dim.name()).chain(OTHERS).collect();
    match suggest::nearest(key, known.iter().copied()) {
        Some(near) => format!("--where: no key `{}`; did you mean `{near}`?", key.escape_debug()),
        None => format!("--where: known keys are {}, not `{}`", known.join(", "), key.escape_debug()),
    }
}

/// Refuses a dimension that the metric does not have in these runs, and a value that none of its numbers has.
pub(super) fn is_there(past: &Past, asked: &SeriesRequest) -> Result<(), String> {
    let all = series::find(past, &SeriesRequest { dims: Dims::new(), ..asked.clone() }).series;
    let keys = || all.iter().map(|series| &series.key.dims);
    let dims: BTreeSet<&str> = keys().flat_map(|dims| dims.iter().map(|(dim, _)| dim.name())).collect();
    for (dim, value) in asked.dims.iter().filter(|(dim, _)| !all.is_empty() && !is_of_samples(*dim)) {
        let (metric, name) = (asked.metric.escape_debug(), dim.name());
        let known: BTreeSet<String> =
            keys().filter_map(|dims| dims.get(dim)).map(ToString::to_string).collect();
        if known.is_empty() {
            let has: Vec<&str> = dims.iter().copied().chain(["node", "nodes", "suite", "instance"]).collect();
            return Err(format!("--where: `{metric}` has no dimension `{name}`; it has {}", has.join(", ")));
        }
        let value = value.to_string();
        if !known.contains(&value) {
            let near = suggest::nearest(&value, known.iter().map(String::as_str));
            let hint = match near {
                Some(near) => format!("did you mean `{name}={near}`?"),
                None => format!(
                    "it has {}",
                    known.iter().take(MOST_VALUES).cloned().collect::<Vec<_>>().join(", ")
                ),
            };
            let value = value.escape_debug();
            return Err(format!("--where {name}={value}: no number of `{metric}` has it; {hint}"));
        }
    }
    Ok(())
}

/// Values of a dimension that are listed.
const MOST_VALUES: usize = 12;

/// Whether a recipe computes this metric, even if no run has it; otherwise an error with the nearest name.
pub(super) fn is_known(metric: &str, catalogue: &Catalogue) -> Result<(), String> {
    let known = || catalogue.metrics().map(|metric| &*metric.name);
    if known().any(|name| name == metric) {
        return Ok(());
    }
    let ending = format!(".{metric}");
    let whole = known().find(|name| name.ends_with(&ending));
    match whole.or_else(|| suggest::nearest(metric, known())) {
        Some(near) => Err(format!("no run has metric `{}`; did you mean `{near}`?", metric.escape_debug())),
        None => Err(format!("no run has metric `{}`, and no recipe computes it", metric.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Result<SeriesRequest, String> {
        let pairs: Vec<_> =
            words.iter().map(|word| crate::cli::key_and_value(word).expect("a pair")).collect();
        read("nccl.busbw", &pairs)
    }

    #[test]
    fn dimensions_are_words_or_numbers_and_a_size_has_its_unit() {
        let read = asked(&["op=all_reduce", "size=1GiB", "gpu=3", "nodes=2", "suite=own"]).expect("good");
        assert_eq!(read.dims.number(Dim::SizeBytes), Some(1 << 30));
        assert_eq!((read.dims.word(Dim::Op), read.dims.number(Dim::Gpu)), (Some("all_reduce"), Some(3)));
        assert_eq!((read.nodes, read.suite.as_deref()), (Some(2), Some("own")));
    }

    #[test]
    fn an_unknown_key_or_number_is_refused() {
        let why = |word: &str| asked(&[word]).expect_err("refused");
        assert!(why("opp=x").contains("did you mean `op`?"), "{}", why("opp=x"));
        assert!(why("quux=x").contains("known keys are case, job, op"), "{}", why("quux=x"));
        assert!(why("gpu=x").contains("expected a whole number: `x`"), "{}", why("gpu=x"));
        assert!(why("nodes=-1").contains("expected a number of nodes"), "{}", why("nodes=-1"));
        assert!(why("size=1Gb/s").starts_with("--where size"), "{}", why("size=1Gb/s"));
        assert!(
            is_known("nccl.buswb", &Catalogue::built_in())
                .expect_err("a slip")
                .contains("did you mean `nccl.busbw`?")
        );
        assert_eq!(is_known("nccl.busbw", &Catalogue::built_in()), Ok(()));
        let refused = ["opp=x", "quux=x", "gpu=x", "nodes=-1", "size=1Gb/s"].map(why);
        let unknown = ["nccl.buswb", "quux"]
            .map(|metric| is_known(metric, &Catalogue::built_in()).expect_err("refused"));
        insta::assert_snapshot!("messages", [&refused[..], &unknown].concat().join("\n"));
    }
}
