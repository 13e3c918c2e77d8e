//! What the program prints: a disk that is full or broken is an error of the program's end, and stops no run on the way. A
//! reader that has gone away, such as `head`, has read enough.

use model::exit_code;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// Why the first output was lost.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints a text whole, at once.
pub(crate) fn print(text: &[u8]) {
    let mut out = io::stdout().lock();
    note(out.write_all(text).and_then(|()| out.flush()));
}

/// Remembers that something could not be printed.
pub(crate) fn note(printed: io::Result<()>) {
    if let Err(error) = printed
        && error.kind() != ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// The exit code of a program that ends with this one: what was not printed is no pass.
pub(crate) fn code_at_end(code: i32) -> i32 {
    note(io::stdout().lock().flush());
    let Some(why) = LOST.get() else { return code };
    // Where stderr is on the same disk, the exit code has to do.
    let _ = writeln!(io::stderr(), "error: stdout: {why}; what was printed there is incomplete");
    code_without_output(code)
}

fn code_without_output(code: i32) -> i32 {
    if code == exit_code::PASSED { exit_code::INCONCLUSIVE } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_output_is_no_pass_and_hides_no_other_end() {
        let codes = [exit_code::PASSED, exit_code::FAILED, exit_code::USAGE, exit_code::INCONCLUSIVE];
        assert_eq!(codes.map(code_without_output), [3, 1, 2, 3]);
    }
}
