//! Text of a file as a terminal may be given it: what it would obey stands there as an escape.

use std::borrow::Cow;

/// Replaces control characters, those that turn or end a line, and those that nothing shows, by escapes: `\x1b`. A command
/// of a CI loses its second `#`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '#' if shown.ends_with('#') && opens_ci_command(&text[at + 1..]) => shown.push_str("\\x23"),
            c if c.is_control() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if is_obeyed(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// GitHub, Azure and TeamCity obey `##[...]`, `##vso[...]` and `##teamcity[...]` anywhere in a line.
fn opens_ci_command(rest: &str) -> bool {
    let begins = |word: &str| rest.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    ["[", "vso[", "teamcity["].into_iter().any(begins)
}

/// Control characters, those that turn the direction of a line or end it, and those that make two names look the same.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_an_escape() {
        assert_eq!(visible("\x1b[31mred\0\n\u{9b}2J\u{202e}x"), r"\x1b[31mred\x00\x0a\x9b2J\u{202e}x");
        assert_eq!(visible("k\u{200b}\u{61c}\u{feff}\u{e0061}"), r"k\u{200b}\u{61c}\u{feff}\u{e0061}");
        assert_eq!(visible("##[error]a ##VSO[b ## c"), r"#\x23[error]a #\x23VSO[b ## c");
        assert_eq!(visible("###[a ##[ ##v[ ##核["), r"##\x23[a #\x23[ ##v[ ##核[");
        assert!(matches!(visible("gemm<float, 2> 核"), std::borrow::Cow::Borrowed(_)));
    }

    #[test]
    fn a_name_of_number_signs_alone_takes_linear_time() {
        // Four million of them: to look from each to the end of the name takes minutes.
        let signs = "#".repeat(4 << 20);
        assert_eq!(visible(&signs), signs);
    }
}
