//! One run from its options to its report: the files it reads, its plan, its folder, its stages, and what is printed of
//! it. The command line chooses between new, resumed and repeated runs; `isolate` and `accept` make several of them.

pub(crate) mod access;
pub(crate) mod after_run;
mod attachments;
pub(crate) mod execution;
mod github;
pub(crate) mod gpu_request;
mod live_reports;
pub(crate) mod load;
pub(crate) mod no_answer;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod past_events;
pub(crate) mod planning;
pub(crate) mod preflight;
mod publication;
pub(crate) mod reached;
pub(crate) mod rehearsal;
pub(crate) mod reports;
mod run;
pub(crate) mod run_cluster;
pub(crate) mod stored;
pub(crate) mod webhook;
mod writable_files;

pub(crate) use options::{ReportedFacts, RunOptions};
pub(crate) use output::{print_errors, report_error};
pub(crate) use run::{plan_and_run, plan_and_run_as, run_plan};
