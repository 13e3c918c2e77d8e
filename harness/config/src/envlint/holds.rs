//! The meaning of a value, as the library that reads it takes it: switches, numbers, lists of words.

use super::table::{Holds, Variable, Word};
use super::version::Version;
use super::{Issue, Library, Severity};
use base::suggest;

pub(super) fn is_on(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    ["true", "yes", "on", "y", "enable"].contains(&value.as_str()) || number(&value).is_some_and(|n| n != 0)
}

pub(super) fn is_off(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    ["false", "no", "off", "n", "disable"].contains(&value.as_str()) || number(&value) == Some(0)
}

/// Whether a list asks for this word.
pub(super) fn names(value: &str, word: &str) -> bool {
    groups(value).any(|group| !group.is_inverted && group.has(word))
}

/// Whether a list leaves this word out, be it by naming others.
pub(super) fn leaves_out(value: &str, word: &str) -> bool {
    groups(value).all(|group| group.has(word) == group.is_inverted)
}

/// Whether a list asks for these words and for no others, for some function at least.
pub(super) fn names_only(value: &str, words: &[&str]) -> bool {
    groups(value).any(|group| {
        let known = |named: &&str| words.iter().any(|word| word.eq_ignore_ascii_case(named));
        !group.is_inverted && !group.words.is_empty() && group.words.iter().all(known)
    })
}

/// As NCCL reads it: decimal, hexadecimal or octal.
pub(super) fn number(value: &str) -> Option<i64> {
    let value = value.trim();
    let (sign, digits) = match value.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, value.strip_prefix('+').unwrap_or(value)),
    };
    let lower = digits.to_ascii_lowercase();
    let read = match lower.strip_prefix("0x") {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16),
        None if lower.len() > 1 && lower.starts_with('0') => i64::from_str_radix(&lower, 8),
        None => lower.parse(),
    };
    read.ok().filter(|_| digits.starts_with(|c: char| c.is_ascii_digit())).map(|read| sign * read)
}

/// What is wrong with the value of a variable. `here` is the release of its library, where it is known.
pub(super) fn wrong(variable: &Variable, value: &str, here: Option<Version>) -> Option<Issue> {
    let name = variable.name;
    if value != value.trim() {
        let message = format!("`{name}` has blanks around its value: {value:?}");
        let advice = "remove them: they are part of the value".to_owned();
        return Some(Issue { severity: Severity::Warning, message, advice });
    }
    let wanted = match variable.holds {
        Holds::Anything => return None,
        Holds::Something if value.is_empty() => "a value".to_owned(),
        Holds::Something => return None,
        Holds::Flag => match number(value) {
            Some(0 | 1) => return None,
            _ => "`0` or `1`".to_owned(),
        },
        Holds::Switch => match is_on(value) || is_off(value) {
            true => return None,
            false => "`0` or `1`".to_owned(),
        },
        Holds::Number(low, high) => match number(value) {
            Some(number) if (low..=high).contains(&number) => return None,
            _ if high == i64::MAX => format!("a whole number from {low}"),
            _ => format!("a whole number from {low} to {high}"),
        },
        Holds::OneOf(words) if words.iter().any(|word| word.eq_ignore_ascii_case(value)) => return None,
        Holds::Exactly(words) if words.contains(&value) => return None,
        Holds::OneOf(words) | Holds::Exactly(words) => one_of(words),
        Holds::Distance(words) if words.contains(&value) => return None,
        Holds::Distance(words) => match number(value) {
            Some(_) => return Some(distance_by_number(name, value, words)),
            None => one_of(words),
        },
        Holds::Words(words) => {
            let stranger = |word: &&str| !words.iter().any(|known| known.eq_ignore_ascii_case(word));
            let stranger = groups(value).flat_map(|group| group.words).find(stranger)?;
            return Some(strange_word(variable, stranger, words.iter().copied()));
        }
        Holds::PerFunction(words) => return wrong_word(variable, value, words, here),
        Holds::Path if value.starts_with('~') => "a path without `~`, which is not expanded".to_owned(),
        Holds::Path if value.is_empty() => "a path".to_owned(),
        Holds::Path => return None,
    };
    let library = variable.library.name();
    let (severity, effect) = match variable.is_fatal {
        true => (Severity::Breaks, format!("{library} aborts")),
        false => (Severity::Warning, format!("{library} ignores it")),
    };
    let message = format!("`{name}` must be {wanted}, {effect}: {value:?}");
    Some(Issue { severity, message, advice: "correct or remove it".to_owned() })
}

fn one_of(words: &[&str]) -> String {
    format!("one of `{}`", words.join("`, `"))
}

fn distance_by_number(name: &str, value: &str, words: &[&str]) -> Issue {
    let message = format!("`{name}` as a number has another meaning in each release: `{value}`");
    Issue { severity: Severity::Warning, message, advice: format!("write {}", one_of(words)) }
}

fn strange_word<'w>(variable: &Variable, word: &str, words: impl Iterator<Item = &'w str> + Clone) -> Issue {
    let message =
        format!("`{}` has a value that {} does not know: `{word}`", variable.name, variable.library.name());
    let advice = match suggest::nearest(word, words.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: `{}`", words.collect::<Vec<_>>().join("`, `")),
    };
    Issue { severity: Severity::Warning, message, advice }
}

/// The release from which NCCL fails over words of algorithms and protocols that it does not know.
const STRICT: Version = Version::new(2, 24);
const FUNCTIONS: [&str; 5] = ["broadcast", "reduce", "allgather", "reducescatter", "allreduce"];

fn wrong_word(variable: &Variable, value: &str, words: &[Word], here: Option<Version>) -> Option<Issue> {
    let known = |group: &Group<'_>| -> Option<Issue> {
        if let Some(function) = group.function
            && !FUNCTIONS.iter().any(|known| known.eq_ignore_ascii_case(function))
        {
            return Some(strange_word(variable, function, FUNCTIONS.into_iter()));
        }
        group.words.iter().find_map(|named| {
            let Some(word) = words.iter().find(|word| word.name.eq_ignore_ascii_case(named)) else {
                return Some(strange_word(variable, named, words.iter().map(|word| word.name)));
            };
            let library = Library::Nccl.name();
            let (what, release) = match (word.since, word.until, here) {
                (Some(since), _, Some(here)) if here < since => ("exists from", since),
                (_, Some(until), Some(here)) if here >= until => ("was removed in", until),
                _ => return None,
            };
            let message =
                format!("`{}` has a value that {what} {library} {release}: `{named}`", variable.name);
            let names: Vec<&str> = words.iter().map(|word| word.name).collect();
            let advice = format!("known: `{}`", names.join("`, `"));
            Some(Issue { severity: Severity::Warning, message, advice })
        })
    };
    let issue = groups(value).find_map(|group| known(&group))?;
    // A release that is not known is taken for a current one: they do not forgive.
    let is_strict = here.is_none_or(|here| here >= STRICT);
    Some(match is_strict {
        true => Issue {
            severity: Severity::Breaks,
            message: format!("{} (NCCL {STRICT} and later fail)", issue.message),
            ..issue
        },
        false => issue,
    })
}

/// What a list says of one function, or of all.
struct Group<'a> {
    function: Option<&'a str>,
    is_inverted: bool,
    words: Vec<&'a str>,
}

impl Group<'_> {
    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|named| named.eq_ignore_ascii_case(word))
    }
}

fn groups(value: &str) -> impl Iterator<Item = Group<'_>> {
    value.split(';').map(|text| {
        let (function, list) = match text.split_once(':') {
            Some((function, list)) => (Some(function.trim()), list.trim()),
            None => (None, text.trim()),
        };
        let (is_inverted, list) = match list.strip_prefix('^') {
            Some(list) => (true, list),
            None => (false, list),
        };
        let words = list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        Group { function, is_inverted, words }
    })
}
