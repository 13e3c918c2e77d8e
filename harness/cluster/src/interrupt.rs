//! Ctrl-C and SIGTERM: the first asks the run to wind up, the second ends the process at once. A terminal that is closed asks
//! where nothing could go on later: a run is resumed instead.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicI32, Ordering};

/// The signal that asked for the end, 0 before.
static ASKED: AtomicI32 = AtomicI32::new(0);

/// From now on the first signal is remembered, and the second is immediate.
pub fn watch() {
    let action = SigAction::new(SigHandler::Handler(remember), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // Safety: the handler touches an atomic and calls `_exit`, both of which signal handlers may do.
        #[allow(unsafe_code)]
        let _ = unsafe { sigaction(signal, &action) };
    }
}

/// The same, and a closed terminal asks as SIGTERM does, for work that cannot be resumed. Under `nohup` it does not.
pub fn watch_terminal() {
    watch();
    let asked = SigAction::new(SigHandler::Handler(hang_up), SaFlags::SA_RESTART, SigSet::empty());
    // Safety: the handler touches an atomic; what was ignored before is ignored again.
    #[allow(unsafe_code)]
    unsafe {
        if let Ok(before) = sigaction(Signal::SIGHUP, &asked)
            && matches!(before.handler(), SigHandler::SigIgn)
        {
            let _ = sigaction(Signal::SIGHUP, &before);
        }
    }
}

/// A shell and the kernel may both send it for the same terminal: a second one ends nothing.
extern "C" fn hang_up(_: i32) {
    let _ = ASKED.compare_exchange(0, Signal::SIGTERM as i32, Ordering::SeqCst, Ordering::SeqCst);
}

/// The exit code that goes with the signal that asked for the end, if one did.
pub fn asked() -> Option<i32> {
    match ASKED.load(Ordering::SeqCst) {
        0 => None,
        signal => Some(128 + signal),
    }
}

extern "C" fn remember(signal: i32) {
    if ASKED.swap(signal, Ordering::SeqCst) != 0 {
        // Safety: `_exit` is async-signal-safe; `std::process::exit` is not.
        #[allow(unsafe_code)]
        unsafe {
            nix::libc::_exit(128 + signal)
        };
    }
}
