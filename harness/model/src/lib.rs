//! The typed files between the stages, exit codes, faults.

pub mod analysis_names;
pub mod artefact;
pub mod exit_code;
pub mod fault;
