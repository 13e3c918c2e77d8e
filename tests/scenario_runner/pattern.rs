//! Texts with gaps: `[..]` stands for anything within a line, `[...]` for anything at all.

/// Whether a text has such a piece; `\n` at its head also stands for the text's beginning.
pub(crate) fn is_in(pattern: &str, text: &str) -> bool {
    let text = format!("\n{text}");
    let mut rest = text.as_str();
    pattern.split("[...]").all(|part| {
        let pieces: Vec<&str> = part.split("[..]").collect();
        let end = end_of(&pieces, rest);
        rest = &rest[end.unwrap_or_default()..];
        end.is_some()
    })
}

/// Whether it is the whole text.
pub(crate) fn is_whole(pattern: &str, text: &str) -> bool {
    is_in(&format!("\u{2}{pattern}\u{3}"), &format!("\u{2}{text}\u{3}"))
}

/// Where the first match of pieces ends that stand in one line, each behind the one before.
fn end_of(pieces: &[&str], text: &str) -> Option<usize> {
    let (first, rest) = pieces.split_first()?;
    text.match_indices(first).find_map(|(at, found)| continued(rest, text, at + found.len()))
}

fn continued(pieces: &[&str], text: &str, from: usize) -> Option<usize> {
    let Some((next, rest)) = pieces.split_first() else { return Some(from) };
    let line = text[from..].find('\n').map_or(text.len(), |at| from + at);
    let matches = text[from..].match_indices(next).map(|(at, found)| (from + at, found.len()));
    matches.take_while(|(at, _)| *at <= line).find_map(|(at, long)| continued(rest, text, at + long))
}
