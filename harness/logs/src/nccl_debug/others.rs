//! What a file without a line of NCCL's log looks like, so that whoever refuses it can say what to do with it.

/// Told by one line of it; nothing where the line could be of anything.
pub(super) fn look(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    if line.starts_with('{') && (line.len() == 1 || line.contains('"')) {
        return Some("JSON, such as NCCL's inspector and RAS write, which is no log");
    }
    if begins(&["Job summary", "RCCL version", "Connected to ncclras"]) || line.contains("ncclras") {
        return Some("the status that NCCL's RAS tells, which is no log");
    }
    // A label of the launcher may stand before it.
    let of_tests = ["# nThread ", "# Collective test ", "# Avg bus bandwidth ", "out-of-place"];
    if of_tests.iter().any(|words| line.contains(words)) {
        return Some("output of nccl-tests, which `harness logs nccl-tests` reads");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_logs_are_told_by_their_lines() {
        let table = [
            ("{", Some("JSON")),
            ("{\"header\": 1}", Some("JSON")),
            ("Job summary", Some("the status")),
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
                look(line).is_some_and(|it| it.starts_with(expected.unwrap_or("?"))),
                expected.is_some(),
                "{line}"
            );
        }
    }
}
