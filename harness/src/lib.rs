//! The program: the command line, the pipeline of the stages, reports and pages. ARCHITECTURE.md describes the crates
//! below it and what always holds.

mod accept;
pub mod analyze;
mod bisect;
pub mod bundle;
pub mod check;
pub mod cli;
mod diagnose;
mod error;
mod filters;
mod isolate;
mod library;
mod limited;
pub mod lint;
pub mod logs;
mod memory;
mod observe;
mod own_recipes;
pub mod page;
pub mod panics;
pub mod pipeline;
pub(crate) mod provision;
mod publish;
pub mod recipe;
pub(crate) mod replay;
pub mod report;
mod rma;
mod session;
pub mod stats;
pub mod summary;
pub mod sweep;
pub mod tasks;
mod topology;
mod trace;
mod warn;
mod watch;
mod watch_fleet;
