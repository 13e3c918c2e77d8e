//! Lines of a report without what launchers and log collectors put around them. A report in JSON that is as `ncclras`
//! wrote it needs none of this.

use crate::text::{front, without_escapes, without_tags};

/// The text with each line as RAS wrote it.
pub(super) fn unwrapped(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for whole in text.split_inclusive('\n') {
        let line = whole.trim_end_matches(['\n', '\r']);
        let clean = without_escapes(line);
        let front = front(&clean, begins);
        let rest = without_tags(clean.get(front.length..).unwrap_or(""));
        // Some labels end before the blank that follows them.
        let rest = rest.strip_prefix(' ').filter(|_| front.length > 0).unwrap_or(&rest);
        // An event has a time of its own.
        if rest.starts_with("PEER_") {
            all.push_str(front.last_stamp.unwrap_or(""));
        }
        all.push_str(rest);
        all.push_str(whole.get(line.len()..).unwrap_or(""));
    }
    all
}

/// Whether a text begins as a line of a report or of its protocol does.
fn begins(text: &str) -> bool {
    const FIRST: [&str; 31] = [
        "NCCL version ",
        "RCCL version ",
        "CUDA runtime ",
        "Job summary",
        "Nodes ",
        "(total)",
        "Communicators...",
        "Group ",
        "#",
        "===",
        "Errors",
        "Warnings",
        "INCOMPLETE",
        "DEAD",
        "TIMEOUT",
        "Rank ",
        "Process ",
        "Missing communicator data ",
        "Communicator ranks ",
        "Initialization error",
        "Asynchronous error",
        "Encountered ",
        "The missing rank",
        "No communicator data ",
        "PEER_",
        "ERROR: ",
        "SERVER PROTOCOL ",
        "{",
        "}",
        "]",
        "\"",
    ];
    let bare = text.trim_start();
    let mut words = bare.split_whitespace();
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    // A row of a table, or `2 ranks have launched up to operation 640`.
    let is_row = words.next().is_some_and(is_number)
        && words.next().is_some_and(|word| is_number(word) || matches!(word, "rank" | "ranks" | "job"));
    is_row || FIRST.iter().any(|word| bare.starts_with(word))
}
