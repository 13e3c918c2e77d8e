//! Damaged input for every reader of foreign bytes: nothing panics, nothing hangs, and no figure that is printed twice is
//! altered in silence. The seeds stand in `seeds`, the shipped TOML files are seeds too; the same cases come every time.
//! `HARNESS_FUZZ_CASES` asks for another number of cases for each reader than the usual one, `HARNESS_FUZZ_FROM` for other
//! cases: those from this number on.

// A case that hangs is seen by the machine's clock.
#![allow(clippy::disallowed_methods)]

mod binary;
mod figures;
mod mutate;
mod readers;
mod text;

use libtest_mimic::{Arguments, Failed, Trial};
use mutate::Mutation;
use readers::{Read, Reader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A case takes microseconds to milliseconds. One that takes so long hangs.
const HANG: Duration = Duration::from_secs(120);
/// Seeds have a few kilobytes each: no case may need more than this beside them.
const MOST_BYTES: u64 = 512 << 20;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn main() {
    let arguments = Arguments::from_args();
    let trial = |reader: Reader| {
        let name = reader.name.to_owned();
        Trial::test(name, move || run(&reader).map_err(Failed::from))
    };
    // What a library prints of its own panic is of no use here: the case that made it is named.
    std::panic::set_hook(Box::new(|_| {}));
    let conclusion = libtest_mimic::run(&arguments, readers::all().into_iter().map(trial).collect());
    if let Err(why) = memory() {
        eprintln!("{why}");
        std::process::exit(1);
    }
    conclusion.exit();
}

/// What a reader made of its cases.
#[derive(Default)]
struct Counts {
    refused: u64,
    with_findings: u64,
    /// Read without a finding, with other figures than the seed's.
    altered: u64,
    as_before: u64,
}

fn run(reader: &Reader) -> Result<(), String> {
    let (cases, from) =
        (number("HARNESS_FUZZ_CASES").unwrap_or(reader.cases), number("HARNESS_FUZZ_FROM").unwrap_or(0));
    let seeds = (reader.seeds)();
    assert!(!seeds.is_empty(), "{}: no seeds", reader.name);
    let mut whole = Vec::new();
    for (name, bytes) in &seeds {
        match (reader.read)(bytes) {
            Read::Clean { figures } => whole.push(figures),
            read => {
                return Err(format!("{}: seed {name} is not read without a finding: {read:?}", reader.name));
            }
        }
    }
    let watched = Watched::begin(reader.name);
    let mut counts = Counts::default();
    for case in from..from + cases {
        watched.case.store(case, Ordering::Relaxed);
        let which = case as usize % seeds.len();
        let mutation = Mutation::new(reader.name, case);
        let bytes = mutation.mutated(&seeds[which].1, &seeds, reader.is_text);
        let read = catch_unwind(AssertUnwindSafe(|| (reader.read)(&bytes)));
        let read = read.map_err(|panic| {
            let why = panic.downcast_ref::<String>().cloned();
            let why = why.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            save(reader.name, case, &bytes);
            format!(
                "{} case {case} of seed {} panics: {}",
                reader.name,
                seeds[which].0,
                why.unwrap_or_default()
            )
        })?;
        match read {
            Read::Refused => counts.refused += 1,
            Read::Findings => counts.with_findings += 1,
            Read::Clean { figures } if figures == whole[which] => counts.as_before += 1,
            Read::Clean { .. } => counts.altered += 1,
            Read::Contradicts(why) => {
                save(reader.name, case, &bytes);
                return Err(format!(
                    "{} case {case} of seed {} is read in silence: {why}",
                    reader.name, seeds[which].0
                ));
            }
        }
    }
    let Counts { refused, with_findings, altered, as_before } = counts;
    eprintln!(
        "{:<16} {cases:>9} cases: {refused} refused, {with_findings} with findings, {as_before} as before, {altered} altered",
        reader.name
    );
    // Whoever refuses everything, or notices nothing, has tested nothing.
    if cases >= 1000 && (refused + with_findings == 0 || altered + as_before == 0) {
        return Err(format!("{}: its cases show nothing", reader.name));
    }
    Ok(())
}

/// Where a person can look at a case that went wrong.
fn save(reader: &str, case: u64, bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("fuzz-{reader}-{case}"));
    match std::fs::write(&path, bytes) {
        Ok(()) => eprintln!("the case is in {}", path.display()),
        Err(error) => eprintln!("the case cannot be kept in {}: {error}", path.display()),
    }
}

/// A watch on one reader: the process ends where a case hangs, for a thread cannot be ended.
struct Watched {
    case: Arc<AtomicU64>,
}

impl Watched {
    fn begin(name: &'static str) -> Watched {
        let case = Arc::new(AtomicU64::new(0));
        let seen = Arc::downgrade(&case);
        std::thread::spawn(move || {
            let (mut last, mut since) = (u64::MAX, Instant::now());
            while let Some(case) = seen.upgrade().map(|case| case.load(Ordering::Relaxed)) {
                if case != last {
                    (last, since) = (case, Instant::now());
                }
                if since.elapsed() > HANG {
                    eprintln!("{name} case {case} hangs");
                    std::process::exit(1);
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        Watched { case }
    }
}

/// The most memory that this process ever had.
fn memory() -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let bytes = kib.ok_or("no VmHWM in /proc/self/status")? << 10;
    eprintln!("most memory of all cases: {} MiB", bytes >> 20);
    match bytes > MOST_BYTES {
        true => Err(format!("more than {} MiB of memory", MOST_BYTES >> 20)),
        false => Ok(()),
    }
}
