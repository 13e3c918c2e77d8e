//! Libraries that panic at bytes from elsewhere: here that is an error of those bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

static READING: AtomicUsize = AtomicUsize::new(0);

/// Nothing where it panicked.
pub(crate) fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    READING.fetch_add(1, Ordering::SeqCst);
    let read = catch_unwind(AssertUnwindSafe(read));
    READING.fetch_sub(1, Ordering::SeqCst);
    read.ok()
}

/// Whether anything is being read so: a panic is then likely one that is met with, and needs no line of its own.
pub fn is_reading() -> bool {
    READING.load(Ordering::SeqCst) > 0
}
