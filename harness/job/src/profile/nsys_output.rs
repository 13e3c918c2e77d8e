//! What nsys prints among a workload's own lines: which mean success, which mean that a report is not there or holds
//! less than it should, and what to do about it.

use logs::stream::{Piece, Pieces};
use metric::finding::Finding;
use std::io::BufRead;

/// A line of nsys that is worth a finding.
struct Sign {
    /// What the line holds, in small letters.
    holds: &'static str,
    cause: &'static str,
    try_next: &'static str,
}

/// In the order in which they are looked for; the first that a line holds counts.
const SIGNS: &[Sign] = &[
    Sign {
        holds: "no reports were generated",
        cause: "no-report",
        try_next: "nothing opened the capture range in this rank: profile the ranks that call it, or use a delay",
    },
    Sign {
        holds: "no reports generated",
        cause: "no-report",
        try_next: "nothing opened the capture range in this rank: profile the ranks that call it, or use a delay",
    },
    Sign {
        holds: "does not contain cuda kernel data",
        cause: "no-kernels",
        try_next: "trace `cuda`, and let the window reach the kernels",
    },
    Sign {
        holds: "err_nvgpuctrperm",
        cause: "gpu-metrics-denied",
        try_next: "the driver restricts GPU counters to root: allow users to read them, or set `gpu_metrics = false`",
    },
    Sign {
        holds: "insufficient privilege",
        cause: "gpu-metrics-denied",
        try_next: "the driver restricts GPU counters to root: allow users to read them, or set `gpu_metrics = false`",
    },
    Sign {
        holds: "nic_sampler",
        cause: "efa-sampler",
        try_next: "this installation of nsys lacks its EFA sampler: install one that has it, or set `efa = false`",
    },
    Sign {
        holds: "unrecognised option",
        cause: "nsys-switch",
        try_next: "this nsys does not know a switch: compare `nsys --version` on the node with the inventory's `nsys_version`",
    },
    Sign {
        holds: "unrecognized option",
        cause: "nsys-switch",
        try_next: "this nsys does not know a switch: compare `nsys --version` on the node with the inventory's `nsys_version`",
    },
    Sign {
        holds: "importer binary not found",
        cause: "importer-missing",
        try_next: "copy the host folder of nsys beside its target folder on the nodes",
    },
    Sign {
        holds: "importation failed",
        cause: "import-failed",
        try_next: "the collection is incomplete: shorten the window, or free space in the temporary folder",
    },
    Sign {
        holds: "unable to attach",
        cause: "session-busy",
        try_next: "another nsys holds the session on this node: end it, or profile one rank per node",
    },
    Sign {
        holds: "use --force-overwrite",
        cause: "report-exists",
        try_next: "the job's folder already holds a report of that name: start a new run",
    },
];

/// The findings that a job's output gives, as far as it can be read: one of each cause, with the line it was first seen
/// in.
pub fn findings(shown: &str, from: impl BufRead) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut pieces = Pieces::new(from);
    while let Ok(Some(Piece { line: number, text: line, .. })) = pieces.next_piece() {
        let small = line.to_lowercase();
        let Some(sign) = SIGNS.iter().find(|sign| small.contains(sign.holds)) else { continue };
        // A mere mention of the sampler is none: it is where it is said to be missing.
        if sign.cause == "efa-sampler"
            && !["not exist", "not found", "cannot", "failed"].iter().any(|word| small.contains(word))
        {
            continue;
        }
        if findings.iter().any(|finding| finding.code == sign.cause) {
            continue;
        }
        let seen: String = line.trim().chars().take(200).collect();
        findings.push(
            Finding::new(sign.cause, format!("nsys: {seen}; {}", sign.try_next)).file(shown).line(number),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_a_cause_and_a_fix() {
        for (line, cause) in [
            ("No reports were generated", "no-report"),
            ("ERROR: Insufficient privilege, see ERR_NVGPUCTRPERM", "gpu-metrics-denied"),
            ("Warning: plugin executable path does not exist: efa_metrics/nic_sampler", "efa-sampler"),
            ("unrecognised option '--pytorch=autograd-nvtx'", "nsys-switch"),
            ("Importer binary not found, qdstrm file is kept", "importer-missing"),
            ("Importation failed", "import-failed"),
        ] {
            let found = findings("stderr", format!("a row\n{line}\n{line}\n").as_bytes());
            assert_eq!(found.len(), 1, "{line}");
            assert_eq!((found[0].code.as_str(), found[0].line), (cause, Some(2)), "{line}");
            assert!(found[0].message.contains("; "), "what to try: {}", found[0].message);
        }
    }

    #[test]
    fn a_mention_of_the_sampler_alone_is_no_finding() {
        assert_eq!(findings("stdout", "Starting plugin efa_metrics/nic_sampler\n".as_bytes()), []);
    }

    #[test]
    fn messages() {
        let printed: Vec<&str> = SIGNS.iter().map(|sign| sign.holds).collect();
        let printed = printed.join("\n").replace("nic_sampler", "nic_sampler not found");
        let found = findings("stderr", printed.as_bytes());
        let lines: Vec<String> =
            found.iter().map(|finding| format!("{}: {}", finding.code, finding.message)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
