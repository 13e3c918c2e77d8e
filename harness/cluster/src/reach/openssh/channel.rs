//! One command over a connection that is there: its text goes in, what it prints comes out, with a bound on memory.
//! Making connections, and asking again for a refused session, is left to the caller.

use crate::reach::output::{head, tail, too_long};
use crate::reach::shell_text::{self, CommandEnd};
use crate::reach::{Access, Answer, ReachError, Status};
use openssh::{Child, ChildStdin, Session, Stdio};
use std::io;
use tokio::io::AsyncWriteExt;

/// What a command may print. More goes through files.
const STDOUT_LIMIT: usize = 16 << 20;
/// The end of what it may say on stderr.
const STDERR_LIMIT: usize = 64 << 10;

pub(super) enum Error {
    /// The host, or the connection's own process, has no room for another session: nothing was run.
    Refused,
    For(ReachError),
}

pub(super) async fn run(session: &Session, host: &str, text: &str, program: &str) -> Result<Answer, Error> {
    let mut command = session.command(shell_text::SHELL);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().await.map_err(|error| not_started(error, host))?;
    let lost = |how: &str| {
        Error::For(ReachError::Unreachable {
            host: host.to_owned(),
            why: format!("{how} while `{program}` ran; whether it finished is unknown"),
        })
    };
    let stdin = child.stdin().take();
    let (Some(stdout), Some(stderr)) = (child.stdout().take(), child.stderr().take()) else {
        return Err(lost("there was no output stream"));
    };
    let (fed, stdout, stderr) = tokio::join!(
        feed(stdin, text.as_bytes()),
        head(stdout, STDOUT_LIMIT + shell_text::AROUND),
        tail(stderr, STDERR_LIMIT)
    );
    let code = end(child).await;
    let Ok(stdout) = stdout.map_err(|_| ()) else { return Err(lost("the connection was lost")) };
    let Some(stdout) = stdout else {
        return Err(Error::For(too_long(format!("`{program}` on {host}"), STDOUT_LIMIT)));
    };
    match shell_text::parse_output(stdout, "") {
        CommandEnd::Ended { code, stdout } => Ok(Answer { status: Status::Code(code), stdout, stderr }),
        CommandEnd::Absent => {
            Err(Error::For(ReachError::NoProgram { host: host.to_owned(), program: program.to_owned() }))
        }
        CommandEnd::NeverBegan { printed } => match code {
            // ssh reports 255 for a broken connection, too.
            Some(code) if code != 255 => {
                let line = shell_text::first_line(&printed).or_else(|| shell_text::first_line(&stderr));
                Err(Error::For(ReachError::NoAccess {
                    by: Access::Ssh,
                    host: host.to_owned(),
                    why: refused(line, code),
                }))
            }
            _ => Err(lost("the connection was lost")),
        },
        CommandEnd::Cut if fed.is_err() => Err(lost("the connection was lost before all input was sent")),
        CommandEnd::Cut => Err(lost("the connection was lost")),
    }
}

/// A login shell, or a command that stands in for it, which runs nothing.
fn refused(line: Option<String>, code: i32) -> String {
    match line {
        Some(line) => format!("its login shell runs no commands; it printed: {line}"),
        None => format!("its login shell runs no commands and printed nothing (exit code {code})"),
    }
}

/// A session that was asked for and is not there.
pub(super) fn not_started(error: openssh::Error, host: &str) -> Error {
    match &error {
        openssh::Error::SshMux(openssh_mux_error) if is_full(openssh_mux_error) => Error::Refused,
        _ => Error::For(ReachError::Unreachable {
            host: host.to_owned(),
            why: format!("the connection was lost: {}", chain(&error)),
        }),
    }
}

/// Refused by the host (`MaxSessions`), or by the connection's process, whose own queue is short.
fn is_full(error: &dyn std::error::Error) -> bool {
    let text = error.to_string();
    text.contains("Session open refused") || text.contains("os error 11")
}

/// An error with its sources: the crates put the cause there.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = error.source();
    }
    text
}

async fn feed(stdin: Option<ChildStdin>, text: &[u8]) -> io::Result<()> {
    match stdin {
        Some(mut stdin) => stdin.write_all(text).await,
        None => Ok(()),
    }
}

/// How a command ended stands in its output; a channel that is waited for leaves nothing half open. What the shell itself
/// ended with, where the host said it.
async fn end(child: Child<&Session>) -> Option<i32> {
    child.wait().await.ok()?.code()
}
