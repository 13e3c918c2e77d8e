//! Runs queries of users in processes of their own, so that one that would fill the memory or never end is ended, and
//! nothing else with it: this very program is started again, lowers its own limits, reads a question from stdin and writes
//! the answer to stdout. What questions and answers are is told in `recipes::own`.

use crate::exit_code;
use nix::sys::resource::{Resource, setrlimit};
use recipes::own::{self, Engine, Limits};
use std::io::{self, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// The verb by which the program starts itself; no person types it.
pub const VERB: &str = "answer-query";

/// So many queries run at once, whatever the number of reports that are open.
const AT_ONCE: usize = 4;

/// Beside what a query may take: the program itself, and what it maps without ever filling it.
const PROGRAM: u64 = 4 << 30;

struct Workers {
    running: Mutex<usize>,
    ended: Condvar,
}

static WORKERS: Workers = Workers { running: Mutex::new(0), ended: Condvar::new() };

/// Who runs the queries of users. Tests of this package have no such program to start.
pub fn engine() -> &'static dyn Engine {
    if cfg!(test) { &own::Here } else { &WORKERS }
}

impl Engine for Workers {
    fn answer(&self, question: Vec<u8>, limits: &Limits) -> Result<Vec<u8>, String> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = self
            .ended
            .wait_while(running, |running| *running >= AT_ONCE)
            .unwrap_or_else(PoisonError::into_inner);
        *running += 1;
        drop(running);
        let answer = ask(question, limits);
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.ended.notify_one();
        answer
    }
}

fn ask(question: Vec<u8>, limits: &Limits) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("no process for the query: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .args([VERB, &limits.memory.to_string(), &limits.seconds.to_string()])
        // One thread: sums of fractions come out the same wherever they are made.
        .env("POLARS_MAX_THREADS", "1")
        .env("RAYON_NUM_THREADS", "1")
        .env("MALLOC_ARENA_MAX", "2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feeding = thread::spawn(move || {
        // A process that ended early reads no more: what it says tells why.
        stdin.map(|mut stdin| stdin.write_all(&question))
    });
    let (tell, told) = mpsc::channel();
    let reading = thread::spawn(move || {
        let output = drain(stdout, stderr);
        // Nobody listens any more where the time was up.
        let _ = tell.send(());
        output
    });
    // The time is the machine's: a query is no part of what pretend clusters pretend.
    let in_time = told.recv_timeout(Duration::from_secs(limits.seconds)).is_ok();
    if !in_time {
        end(&mut child);
    }
    let status = child.wait().map_err(failed)?;
    let _ = feeding.join();
    let (stdout, stderr) = reading.join().map_err(|_| "the answer could not be read".to_owned())?;
    if !in_time {
        return Err(format!("the query did not end within `limits.seconds`: {} s", limits.seconds));
    }
    if status.success() {
        return Ok(stdout);
    }
    Err(why(&Output { status, stdout, stderr }, limits))
}

/// Both at once: a process that fills one of them would wait for who reads the other.
fn drain(stdout: Option<impl Read>, stderr: Option<impl Read + Send + 'static>) -> (Vec<u8>, Vec<u8>) {
    let beside = thread::spawn(move || read(stderr));
    let answer = read(stdout);
    (answer, beside.join().unwrap_or_default())
}

fn read(from: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        // What came until it broke is all there is.
        let _ = from.read_to_end(&mut bytes);
    }
    bytes
}

/// The very process that was started here.
fn end(child: &mut Child) {
    // It may have ended by itself meanwhile.
    let _ = child.kill();
}

fn why(ended: &Output, limits: &Limits) -> String {
    let said = String::from_utf8_lossy(&ended.stderr);
    let out_of_memory =
        ["memory allocation of", "failed to allocate", "out of memory", "Cannot allocate memory"];
    if out_of_memory.iter().any(|sign| said.contains(sign)) {
        return format!("the query needs more than `limits.memory`: {} MiB", limits.memory >> 20);
    }
    match said.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => line.to_owned(),
        None => format!("the query's process ended without a word: {}", ended.status),
    }
}

/// What the process does: its limits first, then one question.
pub fn serve(words: &[String]) -> i32 {
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let [memory, seconds] = numbers.as_slice() else {
        eprintln!("error: `{VERB}` is how the harness runs queries of recipes: it is not typed");
        return exit_code::USAGE;
    };
    let answered = lower(*memory, *seconds).and_then(|()| {
        let mut question = Vec::new();
        io::stdin().read_to_end(&mut question).map_err(|error| error.to_string())?;
        own::answer(&question)
    });
    match answered.and_then(|answer| io::stdout().write_all(&answer).map_err(|error| error.to_string())) {
        Ok(()) => exit_code::PASSED,
        Err(why) => {
            eprintln!("{why}");
            exit_code::FAILED
        }
    }
}

/// Should the process that started it be gone, its own limit of time still ends it.
fn lower(memory: u64, seconds: u64) -> Result<(), String> {
    let whole = memory.saturating_add(PROGRAM);
    let time = seconds.saturating_add(1);
    let limits =
        [(Resource::RLIMIT_DATA, memory), (Resource::RLIMIT_AS, whole), (Resource::RLIMIT_CPU, time)];
    for (which, limit) in limits {
        setrlimit(which, limit, limit)
            .map_err(|error| format!("the query's limits cannot be set: {error}"))?;
    }
    setrlimit(Resource::RLIMIT_CORE, 0, 0)
        .map_err(|error| format!("the query's limits cannot be set: {error}"))
}
