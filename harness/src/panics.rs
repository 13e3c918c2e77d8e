//! What becomes of a panic: an error of one job where it can be kept to that, else exit 3 with how to report it; and a
//! single line in any case. The exit code of an uncaught panic stands in no table.

use crate::standard_output;
use model::exit_code;
use std::any::Any;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe, catch_unwind};

/// Names a place that panics. Tests alone set it.
const PROVOKE: &str = "HARNESS_TEST_PANIC_AT";

/// What a shell reports of a program that writes into a closed pipe.
const ENDED_BY_SIGPIPE: i32 = 141;

/// Runs all of the program; gives its exit code.
pub fn at_the_top(program: impl FnOnce() -> i32) -> i32 {
    panic::set_hook(Box::new(|panic| {
        // Who reads damaged files expects it, and says which file it was.
        if nsys::guarded::is_reading() {
            return;
        }
        // The reader has read enough, such as `head`, or the disk is full: no error of the program.
        if unprinted(message(panic.payload())).is_some() {
            return;
        }
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        let message = message(panic.payload()).escape_debug();
        // A panic within a panic would abort the program.
        let _ = writeln!(io::stderr(), "error: internal error{}: {message}", place.unwrap_or_default());
    }));
    caught("main", program).map(standard_output::code_at_end).unwrap_or_else(|why| {
        if let Some((stream, why)) = unprinted(&why) {
            if why.starts_with("Broken pipe") {
                return ENDED_BY_SIGPIPE;
            }
            // Where it is stderr that takes nothing, the exit code has to do.
            let _ = writeln!(io::stderr(), "error: {stream}: {why}; nothing was decided (exit 3)");
            return exit_code::INCONCLUSIVE;
        }
        let _ = writeln!(
            io::stderr(),
            "this is a bug in harness {}, not in your cluster; nothing was decided (exit 3). Report it with the line above, \
             the command, and the file of `harness bundle --run latest` where a run was made",
            env!("CARGO_PKG_VERSION")
        );
        exit_code::INCONCLUSIVE
    })
}

/// What it gives, or what it panicked with.
pub(crate) fn caught<T>(place: &str, run: impl FnOnce() -> T) -> Result<T, String> {
    let run = || {
        assert!(std::env::var_os(PROVOKE).is_none_or(|at| at != place), "provoked by {PROVOKE}={place}");
        run()
    };
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| message(&*payload).to_owned())
}

/// The stream that took no output, and why, as the standard library words it.
fn unprinted(message: &str) -> Option<(&str, &str)> {
    message.strip_prefix("failed printing to ")?.split_once(": ")
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
