//! Reports, from the log of the counter sampler, that it ended before the workload.

use super::{FileRole, JobInput};
use crate::recipe::efa_traffic::EfaFinding;
use logs::efa_counters::SAMPLER_ENDED;
use metric::finding::Finding;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The finding's code.
const CODE: &str = EfaFinding::SamplerEnded.code();
/// Of each end of a log: it closes with the exit status, and a reason stands before that or at its beginning.
const MOST_BYTES: u64 = 64 << 10;
/// Of a line that is quoted.
const MOST_CHARS: usize = 160;

pub(super) fn findings(job: &JobInput) -> Vec<Finding> {
    let logs = job.files_of(FileRole::Other);
    logs.filter_map(|file| {
        let text = both_ends(&file.path).ok()?;
        let (status, words) = ended(&text)?;
        let words = words.map(|words| format!(": {words}")).unwrap_or_default();
        let message = format!("the sampler ended before the workload with exit status {status}{words}");
        let finding = Finding::new(CODE, message).file(&file.shown);
        Some(match &file.node {
            Some(node) => finding.node(node.as_str()),
            None => finding,
        })
    })
    .collect()
}

fn both_ends(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.by_ref().take(MOST_BYTES).read_to_end(&mut bytes)?;
    let end = length.saturating_sub(MOST_BYTES);
    if end > MOST_BYTES {
        file.seek(SeekFrom::Start(end))?;
        bytes.push(b'\n');
    }
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The exit status, and the most telling line before it.
fn ended(text: &str) -> Option<(&str, Option<String>)> {
    let at = text.find(SAMPLER_ENDED)?;
    let status = text[at + SAMPLER_ENDED.len()..].split_whitespace().next().unwrap_or("unknown");
    let mut lines = text[..at].lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let speaks = |line: &&str| {
        let line = line.to_lowercase();
        ["error", "unrecognized", "no such", "denied", "cannot", "no space"]
            .iter()
            .any(|sign| line.contains(sign))
    };
    let words = lines.clone().find(speaks).or_else(|| lines.next());
    Some((status, words.map(|line| line.chars().take(MOST_CHARS).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_that_printed_much_before_it_ended_is_found_at_the_end_of_its_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        for lines in [1, 2000, 4000, 100_000] {
            let text = "cannot read: no such device\n".repeat(lines) + SAMPLER_ENDED + " 137\n";
            std::fs::write(&path, text).expect("written");
            let text = both_ends(&path).expect("read");
            assert!(text.len() as u64 <= 2 * MOST_BYTES + 1);
            let found = ended(&text).expect("found");
            assert_eq!(
                (found.0, found.1.as_deref()),
                ("137", Some("cannot read: no such device")),
                "{lines}"
            );
        }
    }

    #[test]
    fn the_line_with_the_reason_is_quoted() {
        let table = [
            ("", None),
            ("srun: error: something\n", None),
            (
                "srun: unrecognized option '--overlap'\nTry \"srun --help\"\nEND 1\n",
                Some(("1", Some("srun: unrecognized option '--overlap'"))),
            ),
            ("\n\nkilled\nEND 137\nmore\n", Some(("137", Some("killed")))),
            ("END", Some(("unknown", None))),
        ];
        for (text, expected) in table {
            let text = text.replace("END", SAMPLER_ENDED);
            let found = ended(&text);
            let found = found.as_ref().map(|(status, words)| (*status, words.as_deref()));
            assert_eq!(found, expected, "{text}");
        }
    }
}
