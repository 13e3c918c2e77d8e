//! The rule about launchers that start each other: jobs within jobs, tasks that share a GPU, tasks that write the same
//! report, and nsys sessions that are never started.

use super::resolve::Values;
use super::shell::{self, Word};
use super::{Diagnostics, ParsedFile, assignment, base, number, option};
use ::base::text::count;
use job::window::calls_on_rank_zero;

pub(super) fn rule(file: &ParsedFile, all: &[ParsedFile], diagnostics: &mut Diagnostics) {
    let values = Values::from_script(&file.script);
    let directives: Vec<Word> = file.script.directives.iter().flat_map(|it| it.words.clone()).collect();
    for command in &file.script.commands {
        let words = values.resolved(command);
        let Some((launch, behind)) = Launch::parse(&words, &directives) else { continue };
        let inside = Inside { file, all, launch: &launch };
        inside.look(&words[behind..], file, DEEPEST, diagnostics);
    }
    exhausted(&values, &Word { line: 1, column: 1, ..Word::default() }, diagnostics);
}

fn exhausted(values: &Values, place: &Word, diagnostics: &mut Diagnostics) {
    if values.is_exhausted() {
        let message = "too many variables within variables: not all launchers are checked";
        diagnostics.error(place, message, "write the words of the launchers in full");
    }
}

/// Scripts that start scripts; deeper ones are not followed.
const DEEPEST: usize = 4;

/// How many tasks a launcher starts, as far as the script says it.
struct Launch {
    by: &'static str,
    place: Word,
    nodes: Option<u64>,
    per_node: Option<u64>,
    tasks: Option<u64>,
}

impl Launch {
    /// With the number of the word behind the launcher's own.
    fn parse(words: &[Word], directives: &[Word]) -> Option<(Launch, usize)> {
        let is_front = |word: &Word| {
            assignment(word).is_some()
                || matches!(word.text.as_str(), "exec" | "time" | "nohup" | "env" | "sudo")
        };
        let at = words.iter().position(|word| !is_front(word))?;
        let place = words.get(at)?.clone();
        let behind = &words[at + 1..];
        let own = &behind[..own_options(behind)];
        let launch = match base(&place.text) {
            "srun" => {
                let of = |names: &[&str]| number(own, names).or_else(|| number(directives, names));
                let (nodes, tasks) = (of(&["--nodes", "-N"]), of(&["--ntasks", "-n"]));
                let per_node = of(&["--ntasks-per-node", "--tasks-per-node"]);
                let per_node = per_node.or_else(|| tasks?.checked_div(nodes?)).or(match tasks {
                    None => Some(1),
                    Some(_) => None,
                });
                Launch {
                    by: "srun",
                    place,
                    nodes,
                    per_node,
                    tasks: tasks.or_else(|| nodes?.checked_mul(per_node?)),
                }
            }
            name @ ("mpirun" | "mpiexec" | "orterun") => {
                let tasks = number(own, &["-np", "--np", "-n"]);
                let nodes = number(directives, &["--nodes", "-N"]);
                let mapped = option(own, &["--map-by"])
                    .and_then(|(value, _)| value.strip_prefix("ppr:")?.split(':').next()?.parse().ok());
                let per_node = number(own, &["-N", "--npernode", "-npernode", "-ppn"]).or(mapped);
                let per_node = per_node.or_else(|| tasks?.checked_div(nodes?));
                let by = if name == "mpirun" { "mpirun" } else { "mpiexec" };
                Launch { by, place, nodes, per_node, tasks }
            }
            _ => return None,
        };
        Some((launch, at + 1))
    }

    fn is_many(&self) -> bool {
        self.tasks.is_some_and(|tasks| tasks > 1) || self.per_node.is_some_and(|tasks| tasks > 1)
    }

    /// Whether several tasks stand on one node; where only their sum is known, several are many.
    fn is_many_per_node(&self) -> bool {
        match (self.per_node, self.tasks) {
            (Some(tasks), _) | (None, Some(tasks)) => tasks > 1,
            (None, None) => false,
        }
    }

    fn describe_tasks(&self) -> String {
        match (self.per_node, self.tasks) {
            (Some(1), _) => "one task on each node".to_owned(),
            (Some(tasks), _) => format!("{tasks} tasks on each node"),
            (None, tasks) => format!("{} tasks", tasks.unwrap_or_default()),
        }
    }

    fn advice(&self) -> &'static str {
        match self.by {
            "srun" => "start one task on each node (`--ntasks-per-node=1`), which starts the others",
            _ => "start one task on each node (`-N 1`), which starts the others",
        }
    }
}

/// What stands behind a launcher, there or in scripts that it starts.
struct Inside<'a> {
    file: &'a ParsedFile<'a>,
    all: &'a [ParsedFile<'a>],
    launch: &'a Launch,
}

impl Inside<'_> {
    fn look(&self, words: &[Word], within: &ParsedFile, depth: usize, diagnostics: &mut Diagnostics) {
        let place = |word: &Word| {
            if within.name == self.file.name { word.clone() } else { self.launch.place.clone() }
        };
        let by_file = |word: &Word| match within.name == self.file.name {
            true => String::new(),
            false => format!(" in {}:{}", base(within.name), word.line),
        };
        for (at, word) in words.iter().enumerate() {
            let rest = &words[at + 1..];
            if let Some(name) = starter(words, at) {
                self.starts(name, &place(word), &by_file(word), rest, diagnostics);
            }
            if base(&word.text) == "nsys" && rest.first().is_some_and(|word| word.text == "profile") {
                self.report(&place(word), &by_file(word), rest, diagnostics);
                self.silent(&place(word), (&by_file(word), within), rest, diagnostics);
            }
            if let Some(("CUDA_VISIBLE_DEVICES", gpus)) = assignment(word) {
                self.gpus(gpus, &place(word), &by_file(word), diagnostics);
            }
            self.follow(word, depth, diagnostics);
            // `bash -c "..."` is a script of its own.
            let text = rest.get(1).filter(|_| rest[0].text == "-c" && is_shell(word) && depth > 0);
            if let Some(text) = text {
                let script = shell::read(&text.text);
                let values = Values::from_script(&script);
                for command in &script.commands {
                    let words = values.resolved(command);
                    let there = |word: Word| Word { line: text.line, column: text.column, ..word };
                    let words: Vec<Word> = words.into_iter().map(there).collect();
                    self.look(&words, within, depth - 1, diagnostics);
                }
                exhausted(&values, &place(word), diagnostics);
            }
        }
    }

    /// Looks into a script of ours that is started.
    fn follow(&self, word: &Word, depth: usize, diagnostics: &mut Diagnostics) {
        let name = base(&word.text);
        let is_it = |other: &&ParsedFile| {
            base(other.name) == name && other.name != self.file.name && !other.is_manifest
        };
        let Some(other) = self.all.iter().find(is_it).filter(|_| depth > 0) else { return };
        let values = Values::from_script(&other.script);
        for command in &other.script.commands {
            self.look(&values.resolved(command), other, depth - 1, diagnostics);
        }
        exhausted(&values, &self.launch.place, diagnostics);
    }

    fn starts(&self, name: &str, place: &Word, by_file: &str, words: &[Word], diagnostics: &mut Diagnostics) {
        let launch = self.launch;
        let option =
            option(words, &["--nproc_per_node", "--nproc-per-node", "--num_processes", "--num_gpus"]);
        let count = option.map(|(value, _)| value);
        let alone = count == Some("1") || (count.is_none() && !matches!(name, "deepspeed" | "accelerate"));
        let by = launch.by;
        if launch.is_many_per_node() && !alone {
            let each = count.map_or_else(|| "several".to_owned(), |count| count.escape_debug().to_string());
            let message = format!(
                "`{by}` starts {}, and each starts {each} processes with `{name}`{by_file}: separate jobs on the same GPUs, not one",
                launch.describe_tasks()
            );
            return diagnostics.error(place, message, launch.advice());
        }
        let nnodes =
            super::option(words, &["--nnodes", "--num_machines", "--num_nodes"]).map(|(value, _)| value);
        let is_torch = matches!(name, "torchrun" | "torch.distributed.run" | "torch.distributed.launch");
        if launch.nodes.is_some_and(|nodes| nodes > 1) && is_torch && matches!(nnodes, None | Some("1")) {
            let nodes = launch.nodes.unwrap_or_default();
            let message = format!(
                "`{by}` starts `{name}`{by_file} on {nodes} nodes, but it is set to 1 node: each node runs a separate job"
            );
            diagnostics.error(
                place,
                message,
                &format!("add `--nnodes={nodes}` with `--rdzv_backend=c10d` and `--rdzv_endpoint`"),
            );
        }
    }

    fn gpus(&self, gpus: &str, place: &Word, by_file: &str, diagnostics: &mut Diagnostics) {
        let listed = gpus.split(',').filter(|gpu| !gpu.is_empty()).count() as u64;
        let tasks = self.launch.per_node.or(self.launch.tasks).unwrap_or(1);
        if !gpus.contains('$') && listed > 0 && listed < tasks {
            let message = format!(
                "`CUDA_VISIBLE_DEVICES={}`{by_file} is the same for {}: they share {}",
                gpus.escape_debug(),
                self.launch.describe_tasks(),
                count(listed, "GPU")
            );
            diagnostics.error(place, message, "remove it, or give each task its own GPU by its local rank");
        }
    }

    /// Sessions that wait for a profiler which rank 0 alone calls.
    fn silent(
        &self,
        place: &Word,
        (by_file, within): (&str, &ParsedFile),
        words: &[Word],
        diagnostics: &mut Diagnostics,
    ) {
        let waits =
            option(words, &["--capture-range", "-c"]).is_some_and(|(what, _)| what == "cudaProfilerApi");
        if !waits || !self.launch.is_many() || chooses_ranks(within) {
            return;
        }
        let argv: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
        let Some(by) = calls_on_rank_zero(&argv) else { return };
        let message = format!(
            "{} wait under `nsys`{by_file} for the profiler API, but with `{}` only rank 0 calls it: the other reports stay empty, or are \
             never written",
            self.launch.describe_tasks(),
            by.escape_debug()
        );
        diagnostics.warn(
            place,
            message,
            "pass one rank of each session to the program, or run `nsys` only where `SLURM_PROCID` is 0",
        );
    }

    fn report(&self, place: &Word, by_file: &str, words: &[Word], diagnostics: &mut Diagnostics) {
        let Some((output, _)) = option(words, &["--output", "-o"]) else { return };
        if !self.launch.is_many() {
            return;
        }
        let is_of_rank =
            ["%q{", "%p", "RANK", "PROCID", "LOCALID", "$$", "%n"].iter().any(|it| output.contains(it));
        let is_of_node = ["%h", "HOSTNAME", "hostname", "NODEID"].iter().any(|it| output.contains(it));
        if is_of_rank || (is_of_node && self.launch.per_node == Some(1)) {
            return;
        }
        let message = format!(
            "{} write the same report{by_file}, `{}`: the last one remains, or a broken one",
            self.launch.describe_tasks(),
            output.escape_debug()
        );
        diagnostics.error(
            place,
            message,
            "put the rank into the name: `report_%q{SLURM_PROCID}`, or `%q{RANK}`, or `%h-%p`",
        );
    }
}

/// Whether a script looks at which rank it is: then not all tasks run the same.
fn chooses_ranks(read: &ParsedFile) -> bool {
    const RANKS: [&str; 5] =
        ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"];
    let tests = |word: &Word| matches!(word.text.as_str(), "[" | "[[" | "((" | "test" | "case" | "if");
    let of_rank = |word: &Word| word.uses.iter().any(|it| RANKS.contains(&it.name.as_str()));
    read.script
        .commands
        .iter()
        .any(|command| command.words.iter().any(tests) && command.words.iter().any(of_rank))
}

fn is_shell(word: &Word) -> bool {
    matches!(base(&word.text), "bash" | "sh")
}

/// Options of launchers that have no value, beside all that begin with `--no-`.
const FLAGS: [&str; 26] = [
    "-l",
    "-v",
    "-u",
    "-q",
    "-Q",
    "-E",
    "-K",
    "-O",
    "-s",
    "-Z",
    "--label",
    "--exclusive",
    "--unbuffered",
    "--overlap",
    "--overcommit",
    "--exact",
    "--pty",
    "--verbose",
    "--container-mount-home",
    "--container-remap-root",
    "--container-writable",
    "--allow-run-as-root",
    "--tag-output",
    "--oversubscribe",
    "--report-bindings",
    "--display-map",
];

/// How many words after a launcher are its own options: a `-n` after the program's name belongs to the program.
fn own_options(words: &[Word]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.text.starts_with('-')) {
        let text = word.text.as_str();
        let is_flag = FLAGS.contains(&text) || text.starts_with("--no-") || text.contains('=');
        let has_value = words.get(at + 1).is_some_and(|next| !next.text.starts_with('-'));
        at += match text {
            "--mca" | "-mca" => 3,
            _ if is_flag || !has_value => 1,
            _ => 2,
        };
    }
    at.min(words.len())
}

/// What starts processes by itself, by the name that people know.
fn starter(words: &[Word], at: usize) -> Option<&'static str> {
    let behind = |at: usize| words.get(at).map(|word| word.text.as_str()).unwrap_or_default();
    match base(&words.get(at)?.text) {
        "torchrun" => Some("torchrun"),
        "deepspeed" => Some("deepspeed"),
        "accelerate" if behind(at + 1) == "launch" => Some("accelerate"),
        "torch.distributed.launch" if at > 0 && behind(at - 1) == "-m" => Some("torch.distributed.launch"),
        "torch.distributed.run" if at > 0 && behind(at - 1) == "-m" => Some("torch.distributed.run"),
        _ => None,
    }
}
