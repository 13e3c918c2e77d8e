//! The arguments behind the name of a report: `cuda_gpu_kern_sum:base`, `network_congestion:ticks_threshold=500`.

use std::borrow::Cow;

/// An argument that a report or a recipe accepts behind its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentSpec {
    /// As written before `=`: `ticks_threshold`.
    pub name: Cow<'static, str>,
    /// For the manual, in a few words.
    pub about: Cow<'static, str>,
    /// The kind of its value, and the default.
    pub takes: Takes,
    /// Arguments of one such word exclude each other.
    pub choice: Option<&'static str>,
}

/// What stands behind an argument's name, and what counts where it is not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Takes {
    /// A flag, written without `=`: `base`.
    Nothing,
    /// A whole number, with the default.
    Number(u64),
    /// A number with or without a point, as it is written.
    Decimal(Cow<'static, str>),
    /// Any text that is not empty, with the default.
    Text(Cow<'static, str>),
    /// Two whole numbers, `70..75`, the first no greater than the second.
    Span,
}

/// An argument, with its name, what it does, what it takes and, where it excludes others, the word of their choice. Not a
/// function: what a function makes cannot be borrowed for as long as a constant lives.
macro_rules! argument {
    (#) => {
        None
    };
    (# $choice:expr) => {
        Some($choice)
    };
    (@ $name:expr, $about:expr, $takes:expr, $choice:expr) => {
        $crate::report::ArgumentSpec {
            name: std::borrow::Cow::Borrowed($name),
            about: std::borrow::Cow::Borrowed($about),
            takes: $takes,
            choice: $choice,
        }
    };
    ($name:expr, $about:expr, Takes::Text($default:expr) $(, $choice:expr)? $(,)?) => {
        argument!(@ $name, $about, $crate::report::Takes::Text(std::borrow::Cow::Borrowed($default)),
            argument!(# $($choice)?))
    };
    ($name:expr, $about:expr, Takes::Decimal($default:expr) $(, $choice:expr)? $(,)?) => {
        argument!(@ $name, $about, $crate::report::Takes::Decimal(std::borrow::Cow::Borrowed($default)),
            argument!(# $($choice)?))
    };
    ($name:expr, $about:expr, $takes:expr $(, $choice:expr)? $(,)?) => {
        argument!(@ $name, $about, $takes, argument!(# $($choice)?))
    };
}
pub(crate) use argument;

/// Arguments given for one report or recipe, checked against its declaration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    given: Vec<(String, ArgumentValue)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ArgumentValue {
    Alone,
    Number(u64),
    Text(String),
    Span(u64, u64),
}

/// Why an argument was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadArgument(String);

impl Arguments {
    /// Parses each of `NAME` or `NAME=VALUE`; errors name the report `of`.
    pub fn read(of: &str, known: &[ArgumentSpec], words: &[&str]) -> Result<Arguments, BadArgument> {
        let mut given: Vec<(String, ArgumentValue)> = Vec::new();
        for word in words {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (*word, None),
            };
            let Some(spec) = known.iter().find(|spec| spec.name == name) else {
                let names: Vec<&str> = known.iter().map(|spec| &*spec.name).collect();
                let has = match names.is_empty() {
                    true => "it has none".to_owned(),
                    false => format!("it has: {}", names.join(", ")),
                };
                return Err(BadArgument(format!("`{}` has no argument `{name}`; {has}", of)));
            };
            let value = match (&spec.takes, value) {
                (Takes::Nothing, None) => ArgumentValue::Alone,
                (Takes::Number(_), Some(value)) => ArgumentValue::Number(value.parse().map_err(|_| {
                    BadArgument(format!("`{name}` of `{}` takes a whole number, not `{value}`", of))
                })?),
                (Takes::Decimal(_), Some(value)) => {
                    if !value.parse::<f64>().is_ok_and(f64::is_finite) {
                        let why = format!("`{name}` of `{}` takes a number, not `{value}`", of);
                        return Err(BadArgument(why));
                    }
                    ArgumentValue::Text(value.to_owned())
                }
                (Takes::Span, Some(value)) => span(value).ok_or_else(|| {
                    BadArgument(format!(
                        "`{name}` of `{}` takes two whole numbers, the lesser first, such as `{name}=70..75`, not `{value}`",
                        of
                    ))
                })?,
                (Takes::Text(_), Some(value)) if !value.is_empty() => ArgumentValue::Text(value.to_owned()),
                (Takes::Nothing, Some(_)) => {
                    return Err(BadArgument(format!("`{name}` of `{}` takes no value", of)));
                }
                (Takes::Number(_) | Takes::Decimal(_), None) => {
                    return Err(BadArgument(format!("`{name}` of `{}` takes a number: `{name}=N`", of)));
                }
                (Takes::Span, None) => {
                    return Err(BadArgument(format!("`{name}` of `{}` takes a span: `{name}=70..75`", of)));
                }
                (Takes::Text(_), _) => {
                    return Err(BadArgument(format!("`{name}` of `{}` takes a value: `{name}=...`", of)));
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
            given.push((spec.name.to_string(), value));
        }
        Ok(Arguments { given })
    }

    /// As a person writes them: `bins=60:name=gemm`.
    pub fn written(&self) -> String {
        self.to_strings().join(":")
    }

    /// As they are written behind a name, in the order in which they were given.
    pub fn to_strings(&self) -> Vec<String> {
        let word = |(name, given): &(String, ArgumentValue)| match given {
            ArgumentValue::Alone => name.clone(),
            ArgumentValue::Number(number) => format!("{name}={number}"),
            ArgumentValue::Text(text) => format!("{name}={text}"),
            ArgumentValue::Span(first, last) => format!("{name}={first}..{last}"),
        };
        self.given.iter().map(word).collect()
    }

    /// Whether it was given, with or without a value.
    pub fn has(&self, name: impl AsRef<str>) -> bool {
        self.given.iter().any(|(given, _)| given == name.as_ref())
    }

    /// The last one given counts.
    pub(crate) fn number(&self, spec: &ArgumentSpec) -> u64 {
        match (self.last(spec), &spec.takes) {
            (Some(ArgumentValue::Number(number)), _) => *number,
            (_, Takes::Number(number)) => *number,
            _ => 0,
        }
    }

    /// The last one given counts.
    pub fn text<'a>(&'a self, spec: &'a ArgumentSpec) -> &'a str {
        match (self.last(spec), &spec.takes) {
            (Some(ArgumentValue::Text(text)), _) => text,
            (_, Takes::Text(text) | Takes::Decimal(text)) => text,
            _ => "",
        }
    }

    /// The last one given counts; there is none where none is given.
    pub(crate) fn span(&self, spec: &ArgumentSpec) -> Option<(u64, u64)> {
        match self.last(spec) {
            Some(ArgumentValue::Span(first, last)) => Some((*first, *last)),
            _ => None,
        }
    }

    fn last(&self, spec: &ArgumentSpec) -> Option<&ArgumentValue> {
        self.given.iter().rev().find(|(given, _)| *given == spec.name).map(|(_, given)| given)
    }
}

fn span(text: &str) -> Option<ArgumentValue> {
    let (first, last) = text.split_once("..")?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(ArgumentValue::Span(first, last))
}
