//! Findings that several recipes make, of the files that they read.

use metric::finding_kinds;

finding_kinds! {
    /// Of the files of a job.
    pub(crate) enum FileFinding {
        Unreadable = "unreadable": Garbled,
        NotUnderstood = "not-understood": Garbled,
    }
}

finding_kinds! {
    /// Of the reports of a profiler. `nsys::loss` makes the first two.
    pub enum ReportFinding {
        /// The profiler dropped events.
        EventsDropped = "events-dropped": NotRecorded("profile a shorter window or fewer ranks, then rerun the case"),
        /// The profiler failed on the target.
        TargetError = "target-error": NotRecorded("see `harness recipe diagnostics` on the report, then rerun the case"),
        /// It cannot be opened or decoded.
        Unreadable = "report-unreadable": NoNumber,
    }
}

finding_kinds! {
    /// Of kernels in reports.
    pub(crate) enum KernelFinding {
        NoKernels = "no-kernels": NoNumber,
        Garbled = "report-garbled": NoNumber,
    }
}

finding_kinds! {
    /// Of calls of NCCL in reports.
    pub(crate) enum CallFinding {
        NoNcclCalls = "no-nccl-calls": NoNumber,
    }
}

finding_kinds! {
    /// Of the rate of a training.
    pub(crate) enum RateFinding {
        Impossible = "training-impossible": Note,
    }
}
