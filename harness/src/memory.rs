//! Limits the memory of verbs that read given files in this process: beyond the limit they end with one error and exit
//! 3, so that the machine does not kill another program.

use model::exit_code;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nsys::huge_pages;
use std::sync::OnceLock;
use std::time::Duration;
use std::{process, thread};

static LIMIT: OnceLock<u64> = OnceLock::new();

/// The memory of the machine in bytes; `None` where unknown.
pub(crate) fn total_bytes() -> Option<u64> {
    let known = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = known.strip_prefix("MemTotal:")?.split_whitespace().next()?;
    Some(total.parse::<u64>().ok()?.saturating_mul(1024))
}

/// Limits this process to three quarters of the machine's memory, or to the limit that it was started with if that is
/// less. Mapped files do not count.
pub(crate) fn limit() {
    let Ok((soft, most)) = getrlimit(Resource::RLIMIT_DATA) else { return };
    let limit = total_bytes().map_or(soft, |bytes| (bytes / 4 * 3).min(soft));
    // Without a limit it is as it was.
    if setrlimit(Resource::RLIMIT_DATA, limit, most).is_ok() && LIMIT.set(limit).is_ok() {
        huge_pages::on_failure(refuse);
    }
}

/// Called in the middle of an allocation: nothing here takes memory of its own.
fn refuse() {
    static FIRST: OnceLock<()> = OnceLock::new();
    if FIRST.set(()).is_err() {
        // Another thread ends the process.
        thread::park_timeout(Duration::from_secs(5));
        return;
    }
    eprintln!(
        "error: not enough memory: what is read needs more than {} MiB; export a damaged table again, or read it on a machine with \
         more memory; inconclusive (exit 3)",
        LIMIT.get().map_or(0, |limit| limit >> 20)
    );
    process::exit(exit_code::INCONCLUSIVE)
}
