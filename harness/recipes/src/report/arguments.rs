//! What stands behind the name of a report: `cuda_gpu_kern_sum:base`, `network_congestion:ticks_threshold=500`.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentSpec {
    pub name: &'static str,
    pub about: &'static str,
    /// Of one with a number: the number where it is not given.
    pub number: Option<u64>,
    /// Arguments of one such word exclude each other.
    pub choice: Option<&'static str>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    given: Vec<(&'static str, Option<u64>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadArgument(String);

impl fmt::Display for BadArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadArgument {}

impl Arguments {
    pub fn read(of: &str, known: &'static [ArgumentSpec], words: &[&str]) -> Result<Arguments, BadArgument> {
        let mut given: Vec<(&'static str, Option<u64>)> = Vec::new();
        for word in words {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (*word, None),
            };
            let Some(spec) = known.iter().find(|spec| spec.name == name) else {
                let names: Vec<&str> = known.iter().map(|spec| spec.name).collect();
                let has = match names.is_empty() {
                    true => "it has none".to_owned(),
                    false => format!("it has: {}", names.join(", ")),
                };
                return Err(BadArgument(format!("`{}` has no argument `{name}`; {has}", of)));
            };
            let number = match (spec.number, value) {
                (None, None) => None,
                (Some(_), Some(value)) => Some(value.parse().map_err(|_| {
                    BadArgument(format!("`{name}` of `{}` takes a whole number, not: {value}", of))
                })?),
                (None, Some(_)) => {
                    return Err(BadArgument(format!("`{name}` of `{}` takes no value", of)));
                }
                (Some(_), None) => {
                    return Err(BadArgument(format!("`{name}` of `{}` takes a number: `{name}=N`", of)));
                }
            };
            let rival = known.iter().find(|other| {
                other.name != spec.name
                    && other.choice.is_some()
                    && other.choice == spec.choice
                    && given.iter().any(|(name, _)| *name == other.name)
            });
            if let Some(rival) = rival {
                let why = format!("`{}` and `{name}` of `{}` exclude each other", rival.name, of);
                return Err(BadArgument(why));
            }
            given.push((spec.name, number));
        }
        Ok(Arguments { given })
    }

    pub fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| *given == name)
    }

    /// The last one given counts.
    pub fn number(&self, spec: &ArgumentSpec) -> u64 {
        let given = self.given.iter().rev().find(|(given, _)| *given == spec.name);
        given.and_then(|(_, number)| *number).or(spec.number).unwrap_or_default()
    }
}
