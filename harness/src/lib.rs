//! The map of the house.
//!
//! A run goes through six stages, each a function from one typed file to the next (`artefact`):
//!
//! 1. `plan`: suites x inventory x baselines to a plan that leaves no choice open. Pure.
//! 2. `run`: obeys the plan: jobs under node slots and time limits. Touches the world, through `launch` and `reach`.
//! 3. `collect`: brings home what jobs left, and names what is missing. Touches the world.
//! 4. `analyze`: files to metrics, by the recipes of package `recipes`. Pure.
//! 5. `judge`: metrics to verdicts, and verdicts to culprits. Pure.
//! 6. `report`: verdicts to JUnit, JSON and words. Pure.
//!
//! `pipeline` is where they meet, `replay` takes a stored run through the later ones again, `store` reads and writes what
//! lies between them, `probe` asks nodes what they are before any of it, `isolate` finds by more runs who makes one slow,
//! `drain` takes nodes out of Slurm's queue, `history` looks at many stored runs, `compare` holds two against each other,
//! `accept` says of new nodes by several runs whether they are good,
//! `cli` is what a person calls. `standin` puts the pretend cluster's model behind real processes, `tasks` has reports read
//! on the nodes of a cluster.
//! Dependencies run one way: `cli -> pipeline -> stages -> launch -> reach <- sim`.
//!
//! What always holds, and what is absent on purpose:
//!
//! - Every planned assertion gets exactly one verdict. What was not measured is never a pass, and never zero.
//! - No stage retries in silence. No report computes a number. No launcher reads TOML. No recipe knows a cluster.
//! - Real and pretend worlds are never mixed in one run, and every output of a pretend run says so.
//! - Only `store` asks the machine's clock, once per run; all waiting is tokio's.

pub mod analyze;
pub mod bundle;
pub mod check;
pub mod cli;
mod limited;
pub mod lint;
pub mod logs;
mod memory;
pub mod page;
pub mod panics;
pub mod pipeline;
pub mod provision;
pub mod recipe;
pub mod replay;
pub mod report;
pub mod stats;
pub mod summary;
pub mod sweep;
pub mod tasks;
