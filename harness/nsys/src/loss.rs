//! Whether a report's own diagnostics say that events were lost or that the target failed: then its shares are wrong.

use crate::export::{Export, ExportError};
use crate::tables::DIAGNOSTIC_EVENT;

/// Severity on the profiler's scale: 1 is information, 2 a warning, 3 an error.
const ERROR: i64 = 3;

/// How diagnostics report a loss, in lower case.
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

/// A keyword for the cause, and the first diagnostic that reports it.
pub fn loss(export: &Export) -> Result<Option<(&'static str, String)>, ExportError> {
    let Some(rows) = export.columns(&DIAGNOSTIC_EVENT, &["text", "severity"])? else {
        let why = "it is absent or empty, and each capture has some: export the report again".to_owned();
        return match export.lacks_diagnostics() {
            true => Err(ExportError::Broken { table: DIAGNOSTIC_EVENT.name, why }),
            false => Ok(None),
        };
    };
    let mut error = None;
    for (text, severity) in rows.texts("text")?.iter().zip(rows.maybe_ints("severity")?.iter()) {
        let text = text.unwrap_or_default();
        if reports_loss(text) {
            return Ok(Some(("events-dropped", first_line(text))));
        }
        if severity == Some(ERROR) && error.is_none() {
            error = Some(("target-error", first_line(text)));
        }
    }
    Ok(error)
}

/// Whether the text of a diagnostic reports lost events; `0 events were dropped` does not.
pub fn reports_loss(text: &str) -> bool {
    let small = text.to_lowercase();
    // `0 events were dropped` is good news.
    let none = small.starts_with("0 ") || small.contains(" 0 events") || small.contains("no events were");
    !none && LOST.iter().any(|sign| small.contains(sign))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_loss_differ_from_mere_counts() {
        for text in [
            "Not all CUDA events might have been collected.",
            "4096 events were dropped because the buffer was full",
            "CUPTI buffer overflow",
        ] {
            assert!(reports_loss(text), "{text}");
        }
        for text in [
            "Number of CUDA events collected: \t12.",
            "No NVTX events collected. Does the process use NVTX?",
            "Buffers holding CUDA trace data will be flushed on CudaProfilerStop() call.",
            "0 events were dropped",
            "Unable to collect CPU kernel IP/backtrace samples. perf event paranoid level is 2.",
        ] {
            assert!(!reports_loss(text), "{text}");
        }
    }
}
