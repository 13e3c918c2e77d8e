//! What Slurm's commands print where no controller answers, and which node an srun is for.

use cluster::probe;
use cluster::reach::Answer;
use std::time::Duration;

/// How long a command tries to reach a controller that does not answer.
pub(crate) const UNANSWERED: Duration = Duration::from_secs(8);

/// The node on which srun is to run something.
pub(crate) fn node_of_srun(argv: &[String]) -> Option<String> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    probe::read_srun(&words).map(|(node, _)| node.to_owned())
}

/// What a command prints where the controller's machine refuses the connection.
pub(crate) fn unanswered(argv: &[String]) -> Answer {
    let begins = match argv.first().map(String::as_str).unwrap_or_default() {
        "sbatch" => "sbatch: error: Batch job submission failed: ",
        "srun" => "srun: error: Unable to allocate resources: ",
        "sinfo" => "slurm_load_partitions: ",
        "scancel" => "scancel: error: Kill job error: ",
        _ => "slurm_load_jobs error: ",
    };
    Answer::failed(1, format!("{begins}Unable to contact slurm controller (connect failure)\n"))
}
