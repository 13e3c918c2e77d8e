//! Where a place within a text stands in the file that writes it: between quotes of one kind or another, with escapes or
//! without. For texts in a language of their own, whose errors have lines and columns.

/// How far behind the beginning of `written`, its quotes included, the given line and column of the text lie.
pub(super) fn offset(written: &str, line: u64, column: u64) -> usize {
    let (quotes, escapes) = match written {
        _ if written.starts_with("\"\"\"") => (3, true),
        _ if written.starts_with("'''") => (3, false),
        _ => (1, written.starts_with('"')),
    };
    let mut rest = written.get(quotes..).unwrap_or_default();
    if quotes == 3 {
        // A line break right behind the quotes is none of the text.
        rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
    }
    let (mut at_line, mut at_column) = (1, 1);
    loop {
        // A line that goes on: neither the break is said nor the blanks behind it.
        while let Some(behind) = rest.strip_prefix('\\').filter(|_| escapes)
            && behind.starts_with(char::is_whitespace)
        {
            rest = behind.trim_start();
        }
        if (at_line, at_column) >= (line, column) {
            return written.len() - rest.len();
        }
        let mut letters = rest.chars();
        let said = match letters.next() {
            None => return written.len(),
            Some('\\') if escapes => match letters.next() {
                Some('n') => Some('\n'),
                Some('u') => letters.nth(3),
                Some('U') => letters.nth(7),
                other => other,
            },
            other => other,
        };
        rest = letters.as_str();
        if said == Some('\n') {
            (at_line, at_column) = (at_line + 1, 1);
        } else {
            at_column += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::offset;

    #[test]
    fn a_place_is_found_between_quotes_of_every_kind() {
        let found = |written: &str, line, column| written[offset(written, line, column)..].to_owned();
        assert_eq!(found("'ab c'", 1, 4), "c'");
        assert_eq!(found("'''\nab\n  c\n'''", 2, 3), "c\n'''");
        assert_eq!(found("'''ab\nc'''", 1, 2), "b\nc'''");
        assert_eq!(found("\"\"\"\r\nab\nc\"\"\"", 2, 1), "c\"\"\"");
        assert_eq!(found(r#""a \"b\" c""#, 1, 7), "c\"");
        assert_eq!(found(r#""a\nb""#, 2, 1), "b\"");
        assert_eq!(found("\"\"\"a \\\n   b\"\"\"", 1, 3), "b\"\"\"");
        assert_eq!(found(r#""\u00e4b""#, 1, 2), "b\"");
        assert_eq!(found("'ab'", 7, 1), "", "what lies behind the end is the end");
        assert_eq!(found("", 1, 1), "");
    }
}
