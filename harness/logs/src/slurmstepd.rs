//! Errors of the daemon of a Slurm step in a job's stderr. Its releases begin them with its name, with its name and that of
//! its node, or, from 25.05 on, with the time alone.

use crate::text::moment_ms;

/// What the daemon said, and on which node where the line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepdError<'a> {
    /// As Slurm calls it. Slurm that is built for several slurmd on a host writes `slurmstepd-n1: error: `.
    pub node: Option<&'a str>,
    /// What stands behind `error: `.
    pub said: &'a str,
}

/// How most of its errors begin: of a line whose time was taken off before, they are all that is left to know it by.
const BEGINS: [&str; 6] = ["*** STEP ", "*** JOB ", "Detected ", "execve(): ", "pyxis: ", "mpi/"];
const AFTER_TIME: &str = "] error: ";
/// Of a time with its fractions and its zone.
const LONGEST_TIME: usize = 19 + LONGEST_ZONE;
const LONGEST_ZONE: usize = 14;

/// Reads a line, before which a program may have left one open; nothing where it is another program's.
pub fn parse_error(line: &str) -> Option<StepdError<'_>> {
    if let Some((_, said)) = line.split_once("slurmstepd: error: ") {
        return Some(StepdError { node: None, said });
    }
    let named = line.split_once("slurmstepd-").and_then(|(_, rest)| rest.split_once(": error: "));
    if let Some((node, said)) = named.filter(|(node, _)| is_node(node)) {
        return Some(StepdError { node: Some(node), said });
    }
    let timed = line.match_indices(AFTER_TIME).find_map(|(at, _)| {
        // A bracket is one byte, so that what stands behind it begins at a character.
        let length =
            line.as_bytes()[..at].iter().rev().take(LONGEST_TIME + 1).position(|byte| *byte == b'[')?;
        is_time(line.get(at - length..at)?).then_some(&line[at + AFTER_TIME.len()..])
    });
    let bare =
        || line.strip_prefix("error: ").filter(|said| BEGINS.iter().any(|begin| said.starts_with(begin)));
    timed.or_else(bare).map(|said| StepdError { node: None, said })
}

fn is_node(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// `2026-06-14T11:23:15.694`, as `LogTimeFormat` has it by default, also with a zone or without fractions.
fn is_time(text: &str) -> bool {
    let is_stamp = |stamp: &str| stamp.as_bytes()[10] == b'T' && moment_ms(stamp).is_some();
    let Some((stamp, zone)) = text.split_at_checked(19) else { return false };
    is_stamp(stamp)
        && zone.len() <= LONGEST_ZONE
        && zone.bytes().all(|byte| byte.is_ascii_digit() || b".:+-Z".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_all_releases_are_distinguished_from_those_of_programs() {
        let said = "*** STEP 4.0 ON n1 CANCELLED AT 2026-06-14T11:23:15 DUE to SIGNAL Terminated ***";
        for (begin, node) in [
            ("slurmstepd: error: ", None),
            ("slurmstepd-n1: error: ", Some("n1")),
            ("3: slurmstepd-gpu-01.lab: error: ", Some("gpu-01.lab")),
            ("[2026-06-14T11:23:15.694] error: ", None),
            ("[2026-06-14T11:23:15] error: ", None),
            ("[2026-06-14T11:23:15.694-05:00] error: ", None),
            ("4/105 [00:03<01:15, loss=0.4596][2026-01-18T20:48:23.608] error: ", None),
            ("x] error: [2026-06-14T11:23:15.694] error: ", None),
            ("error: ", None),
        ] {
            let line = format!("{begin}{said}");
            assert_eq!(parse_error(&line), Some(StepdError { node, said }), "{line}");
        }
        for line in [
            "",
            "error: cannot open x",
            "[rank0] error: *** STEP",
            "[2026-06-14 11:23:15] error: no",
            "[2026-06-14T11:23:15.694] [error] no",
            "[2026-06-14T11:23:15.694 n1] error: no",
            "slurmstepd-: error: no",
            "[é2026-06-14T11:23:1] error: no",
            "2026-06-14T11:23:15] error: no",
            "[2026-06-14T11:23:15.694000000-05:00:00] error: no",
        ] {
            assert_eq!(parse_error(line), None, "{line}");
        }
    }
}
