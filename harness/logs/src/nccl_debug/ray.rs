//! What Ray leaves out of a log: a line that several workers print stands there once.

/// A line without Ray's `[repeated 15x across cluster]`, behind which the first one explains it, and how many lines it
/// left out.
pub(super) fn without_repeats(text: &str) -> (&str, u64) {
    let found = text.rsplit_once(" [repeated ").and_then(|(line, rest)| {
        let (times, _) = rest.split_once("x across cluster]")?;
        Some((line, times.parse().ok()?))
    });
    found.unwrap_or((text, 0))
}

/// Whether a line may end so.
pub(super) fn may_be_repeated(line: &[u8]) -> bool {
    line.ends_with(b"across cluster]") || line.ends_with(b")")
}

#[cfg(test)]
mod tests {
    use super::super::{EDGES, read};
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_repeat_is_no_part_of_what_a_line_says() {
        let line = "a:1:2 [0] NCCL INFO Using network IB";
        for behind in [
            " [repeated 15x across cluster]",
            " [repeated 15x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable it.)",
        ] {
            let text = format!("{line}{behind}");
            assert_eq!(without_repeats(&text), (line, 15));
            assert!(may_be_repeated(text.as_bytes()));
            let log = Cursor::new(format!("(RayTrainWorker pid=957, ip=10.67.132.202) {text}\n"));
            let log = read(log, "log", &EDGES).expect("a log in memory");
            assert_eq!(log.networks[0].text, "IB");
            assert_eq!(log.findings.len(), 1, "{:?}", log.findings);
            assert!(log.findings[0].message.starts_with("Ray left out 15 lines"), "{:?}", log.findings);
        }
        for text in [line, "a [repeated x across cluster]", "a [repeated 3x]", ""] {
            assert_eq!(without_repeats(text), (text, 0));
        }
    }
}
