//! Metrics to verdicts, culprits and statuses: judge, isolate, bisect, accept, history, compare.

pub mod accept;
pub mod bisect;
pub mod compare;
pub mod fingerprint;
pub mod history;
pub mod isolate;
pub mod judge;
pub mod pending;
pub mod profile_audit;
pub mod unjudged;

#[cfg(test)]
mod pending_tests;
#[cfg(test)]
mod stored_runs;
#[cfg(test)]
mod unjudged_tests;
