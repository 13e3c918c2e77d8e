//! That the documents hold: each page's commands are run in a folder of its own on the simulated cluster, and print what
//! the page shows. Commands for a real cluster are parsed. `tests/expected docs` rewrites the outputs.

use crate::names::Names;
use crate::page::{self, Block};
use crate::pattern::is_whole;
use crate::project::{HARNESS, OF_THE_MACHINE, Project, Ran, ran, root};
use crate::steps::differences;
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Commands of others in blocks of `sh`; their arguments are theirs to check.
const FOREIGN: [&str; 15] = [
    "cargo install",
    "cargo build",
    "git ",
    "ssh ",
    "scontrol ",
    "kubectl ",
    "openssl ",
    "sinfo",
    "srun ",
    "rdma ",
    "ncclras ",
    "sha256sum ",
    "enroot ",
    "mdbook ",
    "./tests/",
];

/// On a page that begins in an empty folder, as a reader does who has the program alone.
const EMPTY: &str = "<!-- empty folder -->\n";

/// Behind one of these another command begins, or a file.
const OPERATORS: [&str; 5] = ["|", ">", "&&", "||", ";"];

/// Commands that the pages have run at least.
const FEWEST_RUN: usize = 220;

/// How many commands of all pages were run, and how many were only parsed.
#[derive(Default)]
struct Counts {
    run: AtomicUsize,
    parsed: AtomicUsize,
}

/// The README and every page of the book.
pub(crate) fn pages() -> Vec<PathBuf> {
    let (mut found, mut open) = (vec![root().join("README.md")], vec![root().join("docs/src")]);
    while let Some(folder) = open.pop() {
        for entry in
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten()
        {
            match entry.path() {
                path if path.is_dir() => open.push(path),
                path if path.extension().is_some_and(|extension| extension == "md") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// One trial for each page, and one for the book.
pub(crate) fn trials() -> Vec<Trial> {
    let counts = Arc::new(Counts::default());
    let all = pages();
    let left = Arc::new(AtomicUsize::new(all.len()));
    let trial = |path: PathBuf| {
        let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let (counts, left) = (Arc::clone(&counts), Arc::clone(&left));
        Trial::test(
            format!("docs::{}", shown.trim_start_matches("docs/src/").trim_end_matches(".md")),
            move || {
                let wrong = check(&path, &counts).err();
                if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                    let (run, parsed) =
                        (counts.run.load(Ordering::SeqCst), counts.parsed.load(Ordering::SeqCst));
                    eprintln!(
                        "documents: {run} commands were run, {parsed} that need a real cluster were parsed"
                    );
                }
                wrong.map_or(Ok(()), |wrong| Err(Failed::from(format!("{shown}: {wrong}"))))
            },
        )
    };
    let mut trials: Vec<Trial> = all.into_iter().map(trial).collect();
    let built = which("mdbook");
    trials.push(Trial::test("docs::most_commands_are_run", most_are_run));
    trials.push(Trial::test("docs::the_book_is_built", book).with_ignored_flag(!built));
    trials
}

fn which(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|all| std::env::split_paths(&all).any(|folder| folder.join(program).is_file()))
}

/// Blocks that lose their mark are seen to be run no more.
fn most_are_run() -> Result<(), Failed> {
    let count = |path: &PathBuf| -> Result<usize, String> {
        let blocks = page::read(&fs::read_to_string(path).map_err(|error| error.to_string())?)?;
        Ok(blocks.iter().filter(|block| matches!(block, Block::Run { .. })).count())
    };
    let run = pages().iter().map(count).sum::<Result<usize, String>>()?;
    if run < FEWEST_RUN { Err(Failed::from(format!("only {run} commands are run"))) } else { Ok(()) }
}

/// Where mdbook is absent the trial is ignored.
fn book() -> Result<(), Failed> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = std::process::Command::new("mdbook");
    command.arg("build").arg(root().join("docs")).arg("--dest-dir").arg(folder.path());
    let built = ran(command.output().map_err(|error| error.to_string())?);
    let is_whole = folder.path().join("first-hour.html").is_file();
    if built.code == Some(0) && is_whole { Ok(()) } else { Err(Failed::from(built.all())) }
}

/// A page's folder and what its last command left behind.
struct Session {
    project: Project,
    folder: PathBuf,
    names: Names,
    code: i32,
    /// Behind a pipe: a command was used wrongly, which no output may hide.
    is_wrong: bool,
}

fn check(path: &Path, counts: &Counts) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let blocks = page::read(&text)?;
    let project = if text.contains(EMPTY) { Project::bare() } else { Project::new() };
    // As the shell shows it, which may lie behind a link.
    let real = project.path().canonicalize().map_err(|error| error.to_string())?;
    let names = Names::new(real.display().to_string());
    let mut session = Session { project, folder: real, names, code: 0, is_wrong: false };
    let writes = std::env::var_os("HARNESS_EXPECT").is_some_and(|what| what == "write");
    let mut rewritten: Vec<(Range<usize>, String)> = Vec::new();
    let mut pending: Option<(usize, String)> = None;
    for block in &blocks {
        if let Some((line, command)) = pending.take()
            && !matches!(block, Block::Run { command, .. } if command == "echo $?")
        {
            let code = session.code;
            return Err(format!("line {line}: `{command}` exits {code}: show it with `$ echo $?`"));
        }
        match block {
            Block::Run { line, command, output } => {
                let found = session.run(command);
                counts.run.fetch_add(1, Ordering::SeqCst);
                if session.is_wrong {
                    return Err(format!("line {line}: `{command}`: wrong usage in a pipe:\n{found}"));
                }
                let expected = &text[output.clone()];
                if !is_whole(expected, &found) {
                    match writes {
                        true => rewritten.push((output.clone(), with_gap(expected, &found))),
                        false => {
                            return Err(format!(
                                "line {line}: `{command}`: {}",
                                differences("output", expected, &found)
                            ));
                        }
                    }
                }
                if session.code != 0 {
                    pending = Some((*line, command.clone()));
                }
            }
            Block::Setup { line, command, exit } => {
                let found = session.run(command);
                if session.code != *exit {
                    return Err(format!(
                        "line {line}: `{command}` exits {}, not {exit}:\n{found}",
                        session.code
                    ));
                }
                session.code = 0;
            }
            Block::File { name, text, .. } => session.project.write(name, text),
            Block::Parse { line, command } => {
                session.parse(command).map_err(|error| format!("line {line}: `{command}`: {error}"))?;
                counts.parsed.fetch_add(1, Ordering::SeqCst);
            }
            Block::Toml { line, text } => {
                toml::from_str::<toml::Table>(text).map_err(|error| format!("line {line}: {error}"))?;
            }
        }
    }
    if let Some((line, command)) = pending {
        return Err(format!("line {line}: `{command}` exits {}: show it with `$ echo $?`", session.code));
    }
    rewrite(path, text, rewritten)
}

impl Session {
    /// What a terminal would show.
    fn run(&mut self, command: &str) -> String {
        let line = installed(&self.names.real(command));
        let place = self.project.path().join(".place");
        // Behind a pipe the shell knows of the last command only.
        let ended = format!(
            "exec 2>&1; (exit {}); {line}\nall=(\"${{PIPESTATUS[@]}}\"); {{ pwd; echo \"${{all[@]}}\"; }} > {}; exit \"${{all[-1]}}\"",
            self.code,
            place.display()
        );
        let found = ran(self.bash(&ended));
        let left = fs::read_to_string(&place).unwrap_or_default();
        // A reader's folder has no such file.
        let _ = fs::remove_file(&place);
        let (folder, codes) = left.split_once('\n').unwrap_or_default();
        if !folder.is_empty() {
            self.folder = PathBuf::from(folder);
        }
        self.is_wrong = codes.split_whitespace().any(|code| code == "2") && found.code != Some(2);
        self.code = found.code.unwrap_or(-1);
        let shown = self.names.on_page(found.stdout.trim_end_matches('\n'));
        if shown.is_empty() { shown } else { shown + "\n" }
    }

    fn bash(&self, line: &str) -> std::process::Output {
        let programs = Path::new(HARNESS).parent().expect("a folder");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path));
        let mut command = std::process::Command::new("bash");
        command.args(["-c", line]).current_dir(&self.folder).stdin(std::process::Stdio::null());
        command.env("PATH", std::env::join_paths(all).expect("folders")).env("HOME", self.project.path());
        // Whatever the user of this machine has set up is no part of a page.
        for name in OF_THE_MACHINE.into_iter().chain(["XDG_CONFIG_HOME"]) {
            command.env_remove(name);
        }
        command.output().expect("bash starts")
    }

    /// Whether the harness knows such arguments. `--help` behind them is reached only where each is known.
    fn parse(&self, command: &str) -> Result<(), String> {
        let command = command.split(" #").next().unwrap_or_default().trim();
        let line = installed(command);
        let Some(line) = line.strip_prefix("harness ") else {
            return match FOREIGN.iter().any(|known| line.starts_with(known)) {
                true => Ok(()),
                false => Err("neither a command of the harness nor a known one of others".to_owned()),
            };
        };
        let words = shlex::split(line).ok_or("an open quote")?;
        let mut words: Vec<&str> =
            words.iter().map(String::as_str).take_while(|word| !OPERATORS.contains(word)).collect();
        if !words.contains(&"--help") {
            words.push("--help");
        }
        // Several recipes have no help together.
        let several = match words.as_slice() {
            ["recipe", names, ..] => names.split(',').collect(),
            _ => vec![""],
        };
        for recipe in several {
            if !recipe.is_empty() {
                words[1] = recipe;
            }
            let found: Ran = self.project.harness(&words);
            if found.code != Some(0) {
                return Err(found.all());
            }
        }
        Ok(())
    }
}

/// What runs the program from its sources runs the same program here.
fn installed(line: &str) -> String {
    line.replace("cargo run -p harness -- ", "harness ")
}

/// The new output, with as many lines before and behind `[...]` as stood there.
fn with_gap(expected: &str, found: &str) -> String {
    let Some((head, tail)) = expected.split_once("[...]\n") else { return found.to_owned() };
    let lines: Vec<&str> = found.split_inclusive('\n').collect();
    let (before, behind) = (head.lines().count(), tail.lines().count());
    if before + behind >= lines.len() {
        return found.to_owned();
    }
    format!("{}[...]\n{}", lines[..before].concat(), lines[lines.len() - behind..].concat())
}

fn rewrite(path: &Path, mut text: String, rewritten: Vec<(Range<usize>, String)>) -> Result<(), String> {
    if rewritten.is_empty() {
        return Ok(());
    }
    for (at, new) in rewritten.into_iter().rev() {
        text.replace_range(at, &new);
    }
    fs::write(path, text).map_err(|error| error.to_string())
}
