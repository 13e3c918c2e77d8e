//! Lines of logs as their programs wrote them: without what terminals obey, and without the time stamps, labels and
//! tags that launchers and log collectors put around them. All readers of logs take their lines from here.

mod docker;
mod escapes;
mod prefix;
mod stamps;
mod tags;
#[cfg(test)]
mod tests;

pub(super) use escapes::without_escapes;
pub(super) use prefix::{Numbers, front};
pub(super) use stamps::moment_ms;
pub(super) use tags::without_tags;

use std::borrow::Cow;

/// `1 node`, `3 nodes`.
pub(super) fn count(n: u64, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}

/// A line of a program.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plain<'a> {
    /// Whose line it is by its labels, from the outermost on; empty where it has none.
    pub tag: String,
    pub text: Cow<'a, str>,
    /// Those of the labels.
    pub numbers: Numbers,
    /// The first time stamp that was taken off, in milliseconds of a clock whose zone is not known.
    pub moment_ms: Option<i64>,
}

/// Takes all wrapping off a line. `begins` returns whether a text begins as a line of the reader's program: some labels
/// look like words of a program, and are labels only before such a line.
pub(super) fn plain<'a>(line: &'a str, begins: fn(&str) -> bool) -> Plain<'a> {
    if let Some(unwrapped) = docker::unwrap(line) {
        let inner = plain(&unwrapped.log, begins);
        let moment = inner.moment_ms.or_else(|| moment_ms(unwrapped.time.as_deref()?));
        let text = Cow::Owned(inner.text.into_owned());
        return Plain { tag: inner.tag, text, numbers: inner.numbers, moment_ms: moment };
    }
    let line = without_escapes(line);
    let front = front(&line, begins);
    let (tag, length, numbers) = (front.tag, front.length, front.numbers);
    let moment_ms = front.first_stamp.and_then(moment_ms);
    let text = match line {
        Cow::Borrowed(line) => without_tags(line.get(length..).unwrap_or("")),
        Cow::Owned(line) => Cow::Owned(without_tags(line.get(length..).unwrap_or("")).into_owned()),
    };
    Plain { tag, text, numbers, moment_ms }
}
