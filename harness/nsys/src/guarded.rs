//! Turns panics of libraries at foreign bytes into errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

static READING: AtomicUsize = AtomicUsize::new(0);

/// `None` if it panicked.
pub(crate) fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    READING.fetch_add(1, Ordering::SeqCst);
    let read = catch_unwind(AssertUnwindSafe(read));
    READING.fetch_sub(1, Ordering::SeqCst);
    read.ok()
}

/// Whether such a read is going on: a panic is then likely caught here, and needs no message of its own.
pub fn is_reading() -> bool {
    READING.load(Ordering::SeqCst) > 0
}
