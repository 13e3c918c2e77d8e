//! The first line of a flow's output, which the script writes: through whose memory data went, and why.

use crate::text::plain;
use std::fmt;

/// Through whose memory the data of a flow went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowPath {
    /// The memory of the GPU of this index.
    Gpu {
        /// Index on its node, as in `path gpu 7 sysfs`.
        gpu: u32,
        /// The node's own PCIe tree shows that this GPU is the nearest; else the instance's profile does.
        from_sysfs: bool,
    },
    /// The host's, in turns: of the NICs behind one PCIe switch one at a time.
    Host {
        /// From 1 to `turns`.
        turn: u32,
        /// As many as the most NICs behind one PCIe switch.
        turns: u32,
        /// For people, such as `the case asks for it`.
        why: String,
    },
}

impl FlowPath {
    pub(super) fn is_one(line: &str) -> bool {
        line.trim_start().starts_with("path ")
    }

    /// The path in the first line of an output. Outputs of older scripts have none.
    pub fn read(text: &[u8]) -> Option<FlowPath> {
        let line = text.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line.get(..line.len().min(MOST_BYTES))?);
        let line = plain(line.trim_end(), FlowPath::is_one);
        let mut words = line.text.trim_start().splitn(4, ' ');
        match (words.next()?, words.next()?, words.next()?, words.next().unwrap_or_default()) {
            ("path", "gpu", gpu, from) => {
                Some(FlowPath::Gpu { gpu: gpu.parse().ok()?, from_sysfs: from == "sysfs" })
            }
            ("path", "host", turn, why) => {
                let (turn, turns) = turn.split_once('/')?;
                Some(FlowPath::Host {
                    turn: turn.parse().ok()?,
                    turns: turns.parse().ok()?,
                    why: why.to_owned(),
                })
            }
            _ => None,
        }
    }
}

const MOST_BYTES: usize = 300;

impl fmt::Display for FlowPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlowPath::Gpu { gpu, from_sysfs } => {
                write!(f, "path gpu {gpu} {}", if *from_sysfs { "sysfs" } else { "profile" })
            }
            FlowPath::Host { turn, turns, why } => write!(f, "path host {turn}/{turns} {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_back_as_it_was_written() {
        let host = FlowPath::Host { turn: 2, turns: 4, why: "fi_rma_bw on p5-001 cannot use CUDA".into() };
        for path in
            [FlowPath::Gpu { gpu: 7, from_sysfs: true }, FlowPath::Gpu { gpu: 0, from_sysfs: false }, host]
        {
            assert_eq!(FlowPath::read(format!("{path}\n---\n").as_bytes()), Some(path));
        }
    }

    #[test]
    fn what_is_no_path_is_none() {
        for text in
            ["", "\n", "path", "path gpu", "path gpu x sysfs", "path host 1", "path host a/b c", "---"]
        {
            assert_eq!(FlowPath::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(FlowPath::read(&[b'p', 0xff, b'\n']), None);
    }
}
