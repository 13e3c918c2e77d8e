//! Splits an argument at commas or colons that no backslash escapes.

/// At this letter, where no backslash stands before it. Backslashes stay where they are.
pub(super) fn split(text: &str, at: char) -> Vec<&str> {
    let (mut parts, mut begin, mut is_escaped) = (Vec::new(), 0, false);
    for (place, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            letter if letter == at => {
                parts.push(&text[begin..place]);
                begin = place + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// Each letter behind a backslash as it is, without the backslash.
pub(super) fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let next = || match letters.next() {
        // The last one of a text stands for itself.
        Some('\\') => letters.next().or(Some('\\')),
        letter => letter,
    };
    std::iter::from_fn(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_behind_a_backslash_separates_nothing() {
        assert_eq!(split(r"a\,b,c", ','), [r"a\,b", "c"]);
        assert_eq!(split(r"a\\,b", ','), [r"a\\", "b"]);
        assert_eq!((unescaped(r"a\,b\\"), unescaped(r"end\")), ("a,b\\".to_owned(), r"end\".to_owned()));
    }
}
