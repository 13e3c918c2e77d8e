//! What nodes are and have, before any of their time is spent: one script that reads, its answer as typed facts, and
//! which nodes cannot pass. Running jobs on those that can is the business of the stages.

pub mod answer;
mod ask;
mod clock;
mod fit;
mod made;
mod misled;
mod slurm;
mod table;

pub use ask::{Ask, CLOCK};
pub use fit::{is_by_folder, weigh};
pub use made::{NotMade, Probing, asked_to_end, make};
pub use slurm::{end as end_jobs, minutes, read_srun, srun};
pub use table::{differences, remarks, table};
