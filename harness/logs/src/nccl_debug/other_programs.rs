//! Recognizes files of other programs, so that an error can name what was given instead of an NCCL log.

/// Judged by one line; none where the line could be of any program.
pub(super) fn recognize(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    if line.starts_with('{') && (line.len() == 1 || line.contains('"')) {
        return Some(
            "JSON, no debug log: `harness logs inspector` and `harness logs ras` read what NCCL writes so",
        );
    }
    if begins(&["Job summary", "RCCL version", "Connected to ncclras"]) || line.contains("ncclras") {
        return Some("a report of NCCL's RAS; read it with `harness logs ras`");
    }
    // A label of the launcher may stand before it.
    let of_tests = ["# nThread ", "# Collective test ", "# Avg bus bandwidth ", "out-of-place"];
    if of_tests.iter().any(|words| line.contains(words)) {
        return Some("output of nccl-tests; read it with `harness logs nccl-tests`");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_recognized() {
        let table = [
            ("{", Some("JSON")),
            ("{\"header\": 1}", Some("JSON")),
            ("Job summary", Some("a report")),
            (
                "#                                         out-of-place                       in-place",
                Some("output of"),
            ),
            ("# Avg bus bandwidth    : 52.9", Some("output of")),
            ("{ loss }", None),
            ("loss 2.5", None),
        ];
        for (line, expected) in table {
            assert_eq!(
                recognize(line).is_some_and(|it| it.starts_with(expected.unwrap_or("?"))),
                expected.is_some(),
                "{line}"
            );
        }
    }
}
