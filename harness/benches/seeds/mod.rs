//! Something made for each of many seeds, on all cores.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// In an empty folder, which is removed afterwards.
pub(crate) fn in_folder<T>(make: &dyn Fn(&Path) -> Result<T, String>) -> Result<T, String> {
    let folder =
        tempfile::Builder::new().prefix("harness-bench-").tempdir().map_err(|error| error.to_string())?;
    make(folder.path())
}

/// What is made for each seed from 1, as many at a time as there are cores.
pub(crate) fn for_seeds<T: Send>(
    seeds: u64,
    make: &(dyn Fn(u64) -> Result<T, String> + Sync),
) -> Result<Vec<T>, String> {
    let next = AtomicU64::new(1);
    let made = Mutex::new(Ok(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > seeds {
                        return;
                    }
                    let one = make(seed);
                    let mut made = made.lock().expect("no thread panics while it holds this");
                    match (&mut *made, one) {
                        (Ok(all), Ok(one)) => all.push(one),
                        (Ok(_), Err(error)) => *made = Err(error),
                        (Err(_), _) => return,
                    }
                }
            });
        }
    });
    made.into_inner().expect("no thread panics while it holds this")
}
