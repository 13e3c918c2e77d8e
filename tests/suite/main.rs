//! What holds of the whole: the command line, the pretend cluster's faults, the stages end to end, and the house rules.
//! One file per subject; tests of one module stand beside it.

// Tests wait for real processes by the machine's clock; what they test must not.
#![allow(clippy::disallowed_methods)]

mod allocation_script;
mod analyze_on;
mod baselines;
#[path = "../stand_ins/mod.rs"]
mod bed;
mod breakdown;
mod bundle;
mod canary;
mod clean;
mod command_line;
mod corpus;
mod corpus_projections;
mod corpus_reports;
mod cross_checks;
mod determinism;
mod evidence;
mod exact;
mod false_alarms;
mod faults;
mod flows_script;
mod gpus_script;
mod heatmaps;
mod interruption;
mod invariants;
mod inventory_probe;
mod isolate;
mod job_script;
mod lease_script;
mod lint;
mod little;
mod local_launcher;
mod nccl_calls;
mod nccl_log_cases;
mod nccl_logs;
mod oracle;
mod own_recipes;
mod preflight;
mod pretend_baselines;
mod probe_script;
mod profile_script;
mod project;
mod provision;
mod recipe;
mod recipe_all;
mod recipe_docs;
mod replay;
mod rerun;
mod resume;
mod sampler;
mod scenarios;
mod scripts;
mod secrets;
mod shared_allocations;
mod small_export;
mod spread;
mod ssh;
mod ssh_launcher;
mod stand_in_launchers;
mod stand_ins;
mod stats;
mod stats_files;
mod stats_sources;
mod stragglers;
mod sweep;
mod tidy;
mod training;
mod training_logs;
mod window_hook;
mod window_watch;
mod windows;
mod words;
mod wrappers;
