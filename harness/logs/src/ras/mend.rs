//! NCCL 2.28.7 and 2.28.9 leave out one comma in JSON, behind `nvml_dev` of a missing rank: the report is broken just
//! where it is needed. That one place is mended, and no other.

use std::borrow::Cow;

const KEY: &str = "\"nvml_dev\"";

/// The text with the commas that are missing, and how many.
pub(super) fn mend(text: &str) -> (Cow<'_, str>, usize) {
    let mut mended = String::new();
    let (mut from, mut count, mut seen, mut is_missing) = (0, 0, 0, false);
    for (at, _) in text.match_indices(KEY) {
        // A rank that is there has its comma.
        let between = &text[seen..at];
        let (missing, present) = (between.rfind("\"missing_ranks\""), between.rfind("\"ranks\""));
        if missing.is_some() || present.is_some() {
            is_missing = missing > present;
        }
        seen = at;
        let Some(comma) = missing_comma(text, at + KEY.len()).filter(|_| is_missing) else { continue };
        mended.push_str(&text[from..comma]);
        mended.push(',');
        from = comma;
        count += 1;
    }
    if count == 0 {
        return (Cow::Borrowed(text), 0);
    }
    mended.push_str(&text[from..]);
    (Cow::Owned(mended), count)
}

/// Behind `: NUMBER`, where `"status"` follows at once.
fn missing_comma(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?.trim_start().strip_prefix(':')?.trim_start();
    let digits = rest.strip_prefix('-').unwrap_or(rest);
    let next = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = next.len() < digits.len();
    (is_number && next.trim_start().starts_with("\"status\"")).then_some(text.len() - next.len())
}
