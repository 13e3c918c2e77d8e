//! What nodes are and have, before any of their time is spent: one script that reads, its answer as typed facts, and
//! which nodes cannot pass. Running jobs on those that can is the business of the stages.

pub mod answer;
mod beyond;
mod clock;
mod device_pods;
mod environment;
mod fitness;
mod gpu_labels;
mod kubernetes;
mod on_node;
mod probing;
mod request;
mod slurm;
mod standards;
mod table;

pub use beyond::nodes_beyond;
pub use fitness::{is_external, weigh};
pub(crate) use on_node::{NodeJob, on_node};
pub use probing::{NotMade, Probing, asked_to_end, gres, make};
pub use request::{CLOCK, ProbeRequest};
pub use slurm::read_srun;
pub use standards::{hold_to, hold_to_delivery};
pub use table::{differences, remarks, table};
