//! Runs this program again with limits of its own, so that work that would fill the memory, never end or panic ends
//! alone. It reads a question from stdin and writes the answer to stdout.

use model::exit_code;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Beside what a question may take: the program itself, and what it maps without ever filling it.
const PROGRAM: u64 = 4 << 30;

/// What the process may take.
pub(crate) struct Limits {
    /// In bytes.
    pub memory: u64,
    pub seconds: u64,
    pub threads: usize,
    /// Of the answer, in bytes.
    pub answer: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failed {
    NotStarted(io::Error),
    /// It was ended at its limit of time.
    Timeout,
    /// It came to its limit of memory.
    Memory,
    /// The answer is longer than it may be.
    Answer,
    /// The last line that it wrote to stderr.
    Message(String),
    Silent(ExitStatus),
}

/// This very program, also after its file was replaced or removed by an upgrade.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Asks the process of a verb.
pub(crate) fn ask(verb: &str, question: Vec<u8>, limits: &Limits) -> Result<Vec<u8>, Failed> {
    let threads = limits.threads.to_string();
    let mut child = std::env::current_exe()
        .and_then(|program| {
            Command::new(OWN_PROGRAM)
                .arg0(program)
                .args([verb, &limits.memory.to_string(), &limits.seconds.to_string()])
                .env("POLARS_MAX_THREADS", &threads)
                .env("RAYON_NUM_THREADS", &threads)
                .env("MALLOC_ARENA_MAX", "2")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        })
        .map_err(Failed::NotStarted)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feeding = thread::spawn(move || {
        // A process that ended early reads no more; its stderr says why.
        stdin.map(|mut stdin| stdin.write_all(&question))
    });
    let (ended, end_of) = mpsc::channel();
    let most = limits.answer;
    let reading = thread::spawn(move || {
        let output = drain(stdout, stderr, most);
        // After a timeout the receiver is gone.
        let _ = ended.send(());
        output
    });
    // The time is the machine's: it is no part of what a simulated cluster simulates.
    let in_time = end_of.recv_timeout(Duration::from_secs(limits.seconds)).is_ok();
    if !in_time {
        end(&mut child);
    }
    let status = child.wait().map_err(Failed::NotStarted)?;
    let _ = feeding.join();
    let (stdout, stderr) =
        reading.join().map_err(|_| Failed::Message("cannot read the answer".to_owned()))?;
    match () {
        () if !in_time => Err(Failed::Timeout),
        () if stdout.len() as u64 > most => Err(Failed::Answer),
        () if status.success() => Ok(stdout),
        () => Err(why(&String::from_utf8_lossy(&stderr), status)),
    }
}

/// So much of stderr is read.
const MOST_STDERR: u64 = 1 << 20;

/// Both at once: a process that fills one of them would wait for who reads the other.
fn drain(
    stdout: Option<impl Read>,
    stderr: Option<impl Read + Send + 'static>,
    most: u64,
) -> (Vec<u8>, Vec<u8>) {
    let beside = thread::spawn(move || read(stderr, MOST_STDERR));
    let answer = read(stdout, most);
    (answer, beside.join().unwrap_or_default())
}

/// One byte more than allowed shows that there was more; the writer then meets a closed pipe.
fn read(from: Option<impl Read>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // An error ends the output; the bytes before it count.
        let _ = from.take(most + 1).read_to_end(&mut bytes);
    }
    bytes
}

/// The very process that was started here.
fn end(child: &mut Child) {
    // It may have ended by itself meanwhile.
    let _ = child.kill();
}

fn why(output: &str, status: ExitStatus) -> Failed {
    let out_of_memory =
        ["memory allocation of", "failed to allocate", "out of memory", "Cannot allocate memory"];
    if out_of_memory.iter().any(|sign| output.contains(sign)) {
        return Failed::Memory;
    }
    match output.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => Failed::Message(line.to_owned()),
        None => Failed::Silent(status),
    }
}

/// What the process of a verb does: its limits first, then one question.
pub(crate) fn serve(
    verb: &str,
    words: &[String],
    answer: impl FnOnce(&[u8]) -> Result<Vec<u8>, String>,
) -> i32 {
    let (memory, seconds) = match limits(verb, words) {
        Ok(limits) => limits,
        Err(why) => {
            eprintln!("error: {why}");
            return exit_code::USAGE;
        }
    };
    let answered = lower(memory, seconds).and_then(|()| {
        let mut question = Vec::new();
        io::stdin().read_to_end(&mut question).map_err(|error| error.to_string())?;
        answer(&question)
    });
    match answered.and_then(|answer| io::stdout().write_all(&answer).map_err(|error| error.to_string())) {
        Ok(()) => exit_code::PASSED,
        Err(why) => {
            eprintln!("{why}");
            exit_code::FAILED
        }
    }
}

/// The bytes of memory and the seconds by which the harness starts the verb.
pub(crate) fn limits(verb: &str, words: &[String]) -> Result<(u64, u64), String> {
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    match numbers.as_slice() {
        [memory, seconds] => Ok((*memory, *seconds)),
        _ => Err(format!("`{verb}` is internal to the harness")),
    }
}

/// It does not outlive who started it; and processes that it starts itself may have limits of their own.
fn lower(memory: u64, seconds: u64) -> Result<(), String> {
    let failed = |error: nix::Error| format!("cannot set the limits of the process: {error}");
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(failed)?;
    let limits = [
        (Resource::RLIMIT_DATA, memory),
        (Resource::RLIMIT_AS, memory.saturating_add(PROGRAM)),
        (Resource::RLIMIT_CPU, seconds.saturating_add(1)),
        (Resource::RLIMIT_CORE, 0),
    ];
    for (which, limit) in limits {
        let (_, most) = getrlimit(which).map_err(failed)?;
        setrlimit(which, limit.min(most), most).map_err(failed)?;
    }
    Ok(())
}
