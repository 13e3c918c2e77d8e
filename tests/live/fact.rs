//! Tests by the facts that they state. Where what they need is absent they are ignored, with the reason, and fail where
//! they are asked for nevertheless.

use libtest_mimic::Trial;

/// What holds, and the test of it.
pub(crate) type Fact = (&'static str, fn());

/// Those that only `tests/nightly` runs.
pub(crate) fn nightly(facts: &[Fact], absent: Option<&str>) -> Vec<Trial> {
    trials("nightly", facts, absent).into_iter().map(|trial| trial.with_ignored_flag(true)).collect()
}

/// `absent`: why none of them can be looked at on this machine.
pub(crate) fn trials(room: &str, facts: &[Fact], absent: Option<&str>) -> Vec<Trial> {
    let trial = |(name, test): &Fact| {
        let name = format!("{room}::{name}");
        match (absent, *test) {
            (Some(why), _) => {
                let (kind, why) = (why.to_owned(), why.to_owned());
                Trial::test(name, move || Err(why.into())).with_kind(kind).with_ignored_flag(true)
            }
            (None, test) => Trial::test(name, move || {
                test();
                Ok(())
            }),
        }
    };
    facts.iter().map(trial).collect()
}
