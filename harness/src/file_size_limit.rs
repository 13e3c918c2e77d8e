//! A limit on the size of files (`ulimit -f`) makes a write fail, and does not end the program before its reports are
//! written.

use nix::sys::signal::{SigSet, Signal};

/// Called before there are threads, which take the mask over; programs that are started do not.
pub(crate) fn make_it_an_error() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    if let Err(error) = signals.thread_block() {
        eprintln!("warning: a limit on the size of files would end the program: {error}");
    }
}
