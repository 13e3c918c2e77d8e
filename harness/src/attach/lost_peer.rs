//! Whether a part of a job failed because of a peer, by what it printed last. Its pod was the only one to fail by itself, and
//! its node is not at fault for that: the peer may hang, or have ended in a way that its pod did not record. Where the part
//! also names a broken GPU, that came first: no peer that is gone breaks one.

use model::artefact::{CaseJobs, Collected, CollectedFile, FileKind};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Of a longer file only the end is read.
const TAIL: u64 = 64 << 10;

/// How NCCL, PyTorch, MPI and the system say that a peer is gone or does not answer; in lower case. Errors of NCCL without a
/// reason are said at both ends.
const SIGNS: [&str; 14] = [
    "remote process exited",
    "ncclremoteerror",
    "ncclsystemerror",
    "unhandled system error",
    "connection reset",
    "connection closed",
    "connection refused",
    "connection lost",
    "lost communication with",
    "broken pipe",
    "no route to host",
    "timed out",
    "collective operation timeout",
    "test timeout (",
];

/// How CUDA and NVML say that a GPU of the process itself is broken; in lower case. Errors of NVLink and of memory that a peer
/// may have mapped are not among them, nor is any that a program or a peer that is gone may cause.
const BROKEN_GPU: [&str; 5] = [
    "uncorrectable ecc error encountered",
    "cuda_error_ecc_uncorrectable",
    "cudaerroreccuncorrectable",
    "gpu has fallen off the bus",
    "gpu is lost",
];

/// The records without the blame of nodes whose own files name a lost peer and no broken GPU. `folder` is the case's.
pub(super) fn clear_blame(mut jobs: CaseJobs, collected: &Collected, folder: &Path) -> CaseJobs {
    for record in &mut jobs.jobs {
        let is_of_blamed = |file: &&CollectedFile| {
            file.job == record.name
                && file.node.is_some()
                && file.node.as_ref() == record.blamed.as_ref().map(|blamed| &blamed.node)
                && is_printed(file.kind)
        };
        let files = collected.files.iter().filter(is_of_blamed);
        // A file that cannot be read names nothing.
        let tails: Vec<String> =
            files.map(|file| tail(&folder.join(&file.path)).unwrap_or_default().to_lowercase()).collect();
        let names = |signs: &[&str]| tails.iter().any(|tail| signs.iter().any(|sign| tail.contains(sign)));
        if names(&SIGNS) && !names(&BROKEN_GPU) {
            record.blamed = None;
        }
    }
    jobs
}

fn is_printed(kind: FileKind) -> bool {
    matches!(
        kind,
        FileKind::NcclTests | FileKind::GpuNcclTests | FileKind::Stdout | FileKind::Stderr | FileKind::Log
    )
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::artefact::{Blamed, Ended, Format, JobRecord};

    /// The node that stays blamed, of n2, where a node prints a text.
    fn blamed(printed_by: &str, text: &str) -> Option<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let name = format!("stderr.{printed_by}");
        std::fs::write(folder.path().join(&name), text).expect("written");
        let file = CollectedFile {
            job: "all".to_owned(),
            path: name,
            kind: FileKind::Stderr,
            node: Some(printed_by.to_owned()),
            part: None,
            rank: None,
            bytes: text.len() as u64,
            sha256: String::new(),
            redacted: 0,
        };
        let collected = Collected {
            format: Format,
            files: vec![file],
            missing: Vec::new(),
            changed: Vec::new(),
            simulated: Vec::new(),
        };
        let record = JobRecord {
            name: "all".to_owned(),
            handle: None,
            submitted: None,
            started: None,
            ended: None,
            seconds: None,
            end: Ended::Exited { code: 1 },
            blamed: Some(Blamed { node: "n2".to_owned(), evidence: String::new() }),
            findings: Vec::new(),
        };
        let jobs = CaseJobs { format: Format, skipped: None, jobs: vec![record] };
        let cleared = clear_blame(jobs, &collected, folder.path());
        assert_eq!(cleared.jobs[0].end, Ended::Exited { code: 1 });
        cleared.jobs[0].blamed.as_ref().map(|blamed| blamed.node.clone())
    }

    #[test]
    fn a_pod_that_failed_because_of_a_peer_is_not_blamed() {
        for text in [
            "n2:7:9 [0] NCCL WARN remote process exited or there was a network error\n",
            "n2: Test NCCL failure common.cu:958 'unhandled system error'\n",
            "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.1]:4711\n",
            "[Rank 8] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7) ran for 600012 ms\n",
            "recv: Connection reset by peer\n",
        ] {
            assert_eq!(blamed("n2", text), None, "{text}");
            // What others print says nothing of its own end.
            assert_eq!(blamed("n1", text).as_deref(), Some("n2"), "{text}");
        }
    }

    #[test]
    fn a_pod_whose_gpu_broke_stays_blamed_though_its_sibling_ranks_name_a_lost_peer() {
        let lost = "n2:7:9 [0] NCCL WARN remote process exited or there was a network error\n";
        for own in [
            "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n",
            "n2:7:9 [0] NCCL WARN Cuda failure 214 'uncorrectable ECC error encountered'\n",
            "Unable to determine the device handle for GPU0000:53:00.0: GPU is lost. Reboot the system to recover\n",
        ] {
            assert_eq!(blamed("n2", &format!("{own}{lost}")).as_deref(), Some("n2"), "{own}");
            // Ranks print in any order.
            assert_eq!(blamed("n2", &format!("{lost}{own}")).as_deref(), Some("n2"), "{own}");
        }
        // A program that is at fault, a rank that is ended, and the NVLink of a peer that is gone give these.
        for either in [
            "RuntimeError: CUDA error: unspecified launch failure\n",
            "RuntimeError: CUDA error: an illegal memory access was encountered\n",
            "CUDA error: uncorrectable NVLink error detected during the execution\n",
            "CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error\n",
            // Nor does a check that counts none.
            "n2: uncorrectable ECC errors: 0\n",
        ] {
            assert_eq!(blamed("n2", &format!("{either}{lost}")), None, "{either}");
        }
    }

    #[test]
    fn a_pod_that_failed_of_its_own_stays_blamed() {
        let early = format!("connect: Connection refused\n{}", "step\n".repeat(20_000));
        for text in ["", "CUDA error: uncorrectable ECC error encountered\n", early.as_str()] {
            assert_eq!(blamed("n2", text).as_deref(), Some("n2"));
        }
    }
}
