//! Asks the ranks on a node for dumps of PyTorch's flight recorder, and waits until they are written, with a limit. What became
//! of the request is left as a file beside the dumps.

use super::Command;
use job::flight_recorder::{DUMP, PIPE, PIPE_ENDS};
use std::fmt::Write;
use std::time::Duration;

/// A request, as a node runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpRequest<'a> {
    /// The job's.
    pub folder: &'a str,
    /// Nothing where Slurm says on each node which it is.
    pub node: Option<&'a str>,
}

/// What became of the request for one rank of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankDump {
    /// Of the whole job.
    pub rank: u32,
    /// Of its dump; nothing where it left none in time.
    pub bytes: Option<u64>,
}

/// A rank looks into its pipe every second.
const TAKEN_WITHIN_S: u64 = 5;
/// And then writes some MiB at most.
const WRITTEN_WITHIN_S: u64 = 10;
/// Starting and connecting take their own time.
const LIMIT: Duration = Duration::from_secs(TAKEN_WITHIN_S + WRITTEN_WITHIN_S + 15);
const NAME: &str = "harness-flight-dumps";
/// Stands for the name of the node where Slurm starts it.
const BY_SLURM: &str = "-";

/// The folder is shared, and a pipe is not: a byte that is taken out of one was taken by a rank of this node, which is how it
/// is known to be here. A pipe that is opened to read and to write never blocks.
const SCRIPT: &str = r#"
LC_ALL=C
cd -- "$1" || exit 1
node=$2 dump=$3 pipe=$4 ends=$5 taken_within=$6 written_within=$7
[[ $node == - ]] && node=${SLURMD_NODENAME:-${HOSTNAME%%.*}}
ulimit -n "$(ulimit -Hn)" 2> /dev/null
open=() taken=()
for path in "$pipe"*"$ends"; do
  rank=${path#"$pipe"} rank=${rank%"$ends"}
  [[ $rank =~ ^(0|[1-9][0-9]{0,6})$ && -p $path && ! -L $path ]] || continue
  exec {fd}<> "$path" || continue
  printf 1 >&"$fd" && open[rank]=$fd
done 2> /dev/null
SECONDS=0
while ((${#open[@]} > 0 && SECONDS < taken_within)); do
  sleep 0.2
  for rank in "${!open[@]}"; do
    read -r -t 0 -u "${open[rank]}" && continue
    fd=${open[rank]}
    exec {fd}>&-
    unset "open[rank]"
    taken+=("$rank")
  done
done
before= SECONDS=0
while :; do
  lines= missing=
  for rank in "${taken[@]}"; do
    bytes=$(stat -c %s -- "$dump$rank" 2> /dev/null)
    [[ ${bytes:-0} == 0 ]] && missing=yes
    lines+="rank $rank ${bytes:-0}"$'\n'
  done
  [[ -z $missing && $lines == "$before" ]] && break
  ((SECONDS >= written_within)) && break
  before=$lines
  sleep 0.5
done
printf 'node %s\n%s' "$node" "$lines" > "fr_request.$node.part" && mv -f -- "fr_request.$node.part" "fr_request.$node.txt"
"#;

impl<'a> DumpRequest<'a> {
    /// What a node runs.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let (taken, written) = (TAKEN_WITHIN_S.to_string(), WRITTEN_WITHIN_S.to_string());
        let node = self.node.unwrap_or(BY_SLURM);
        let all = ["bash", "-c", SCRIPT, NAME, self.folder, node, DUMP, PIPE, PIPE_ENDS, &taken, &written];
        all.map(str::to_owned).to_vec()
    }

    /// These arguments, or others that run them.
    pub(crate) fn command(argv: Vec<String>) -> Command {
        Command::new(argv, LIMIT)
    }

    /// The request that an argument list makes, by the very script; nothing where it is any other.
    pub fn read<S: AsRef<str>>(argv: &'a [S]) -> Option<DumpRequest<'a>> {
        let words: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
        match words.as_slice() {
            ["bash", "-c", SCRIPT, NAME, folder, node, _, _, _, _, _] => {
                Some(DumpRequest { folder, node: Some(*node).filter(|node| *node != BY_SLURM) })
            }
            _ => None,
        }
    }

    /// The request within a step that srun starts in a job that runs: the job's id, and the request.
    pub fn read_step<S: AsRef<str>>(argv: &'a [S]) -> Option<(&'a str, DumpRequest<'a>)> {
        let at = argv.iter().position(|word| word.as_ref() == "bash").filter(|at| *at > 0)?;
        let (options, inner) = argv.split_at(at);
        let is_step =
            options.first()?.as_ref() == "srun" && options.iter().any(|word| word.as_ref() == "--overlap");
        let id =
            options.iter().find_map(|word| word.as_ref().strip_prefix("--jobid=")).filter(|_| is_step)?;
        Some((id, DumpRequest::read(inner)?))
    }
}

/// The file that is left on a node.
pub fn render(node: &str, ranks: &[RankDump]) -> String {
    let mut text = format!("node {node}\n");
    for RankDump { rank, bytes } in ranks {
        // Infallible: writing to a string.
        let _ = writeln!(text, "rank {rank} {}", bytes.unwrap_or_default());
    }
    text
}

#[cfg(test)]
#[path = "flight_dumps_tests.rs"]
mod tests;
