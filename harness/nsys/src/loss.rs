//! Whether a report says of itself that it lacks events, or that its target went wrong: then no share is one.

use crate::export::{Export, ExportError};
use crate::tables::DIAGNOSTIC_EVENT;

/// Severity 3 of the profiler's own scale: 1 tells, 2 warns, 3 is an error.
const ERROR: i64 = 3;

/// What a report says that lost something, in small letters.
const LOST: [&str; 9] = [
    "events were dropped",
    "events have been dropped",
    "events might have been dropped",
    "events were lost",
    "events have been lost",
    "events might have been collected",
    "buffer overflow",
    "buffers overflow",
    "data loss",
];

/// The cause in a word and the first text that tells of it.
pub fn loss(export: &Export) -> Result<Option<(&'static str, String)>, ExportError> {
    let Some(rows) = export.columns(&DIAGNOSTIC_EVENT, &["text", "severity"])? else { return Ok(None) };
    let mut error = None;
    for (text, severity) in rows.texts("text")?.iter().zip(rows.maybe_ints("severity")?.iter()) {
        let text = text.unwrap_or_default();
        if tells_of_loss(text) {
            return Ok(Some(("events-dropped", shown(text))));
        }
        if severity == Some(ERROR) && error.is_none() {
            error = Some(("target-error", shown(text)));
        }
    }
    Ok(error)
}

pub fn tells_of_loss(text: &str) -> bool {
    let small = text.to_lowercase();
    // `0 events were dropped` is good news.
    let none = small.starts_with("0 ") || small.contains(" 0 events") || small.contains("no events were");
    !none && LOST.iter().any(|sign| small.contains(sign))
}

fn shown(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_of_loss_is_told_from_what_merely_counts() {
        for text in [
            "Not all CUDA events might have been collected.",
            "4096 events were dropped because the buffer was full",
            "CUPTI buffer overflow",
        ] {
            assert!(tells_of_loss(text), "{text}");
        }
        for text in [
            "Number of CUDA events collected: \t12.",
            "No NVTX events collected. Does the process use NVTX?",
            "Buffers holding CUDA trace data will be flushed on CudaProfilerStop() call.",
            "0 events were dropped",
            "Unable to collect CPU kernel IP/backtrace samples. perf event paranoid level is 2.",
        ] {
            assert!(!tells_of_loss(text), "{text}");
        }
    }
}
