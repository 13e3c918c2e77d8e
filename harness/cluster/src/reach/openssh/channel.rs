//! One command over a connection that is there: its text goes in, what it prints comes out, with a bound on memory.
//! Making connections, and asking again for a refused session, is left to the caller.

use super::shell_text::{self, CommandEnd};
use crate::reach::{Answer, ReachError, Status};
use openssh::{Child, ChildStdin, Session, Stdio};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// What a command may print, and the end of what it may say on stderr. More goes through files.
pub(super) const STDOUT_LIMIT: usize = 16 << 20;
pub(super) const STDERR_LIMIT: usize = 64 << 10;

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
        tail(stderr)
    );
    let code = end(child).await;
    let Ok(stdout) = stdout.map_err(|_| ()) else { return Err(lost("the connection was lost")) };
    let Some(stdout) = stdout else {
        let why = format!("its output exceeds {} MiB; larger output must go to a file", STDOUT_LIMIT >> 20);
        return Err(Error::For(ReachError::Failed { what: format!("`{program}` on {host}"), why }));
    };
    match shell_text::parse_output(stdout) {
        CommandEnd::Ended { code, stdout } => Ok(Answer { status: Status::Code(code), stdout, stderr }),
        CommandEnd::Absent => {
            Err(Error::For(ReachError::NoProgram { host: host.to_owned(), program: program.to_owned() }))
        }
        CommandEnd::NeverBegan { printed } => match code {
            // ssh reports 255 for a broken connection, too.
            Some(code) if code != 255 => {
                let line = shell_text::first_line(&printed).or_else(|| shell_text::first_line(&stderr));
                Err(Error::For(ReachError::NoAccess { host: host.to_owned(), why: refused(line, code) }))
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

/// All of a stream, or nothing where it is longer than the limit.
async fn head(mut stream: impl AsyncRead + Unpin, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 16 << 10];
    loop {
        match stream.read(&mut chunk).await? {
            0 => return Ok(Some(bytes)),
            n if bytes.len() + n > limit => return Ok(None),
            n => bytes.extend_from_slice(&chunk[..n]),
        }
    }
}

/// The end of a stream, which says at its head how much it leaves out. One that breaks off has been what it was.
async fn tail(mut stream: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut chunk = vec![0; 16 << 10];
    let mut left_out = 0;
    while let Ok(n @ 1..) = stream.read(&mut chunk).await {
        bytes.extend_from_slice(&chunk[..n]);
        if bytes.len() > 2 * STDERR_LIMIT {
            let over = bytes.len() - STDERR_LIMIT;
            bytes.drain(..over);
            left_out += over;
        }
    }
    if bytes.len() > STDERR_LIMIT {
        let over = bytes.len() - STDERR_LIMIT;
        bytes.drain(..over);
        left_out += over;
    }
    match left_out {
        0 => bytes,
        n => [format!("[{n} bytes before this are left out]\n").as_bytes(), &bytes].concat(),
    }
}

/// How a command ended stands in its output; a channel that is waited for leaves nothing half open. What the shell itself
/// ended with, where the host said it.
async fn end(child: Child<&Session>) -> Option<i32> {
    child.wait().await.ok()?.code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_beyond_its_limit_is_no_output_and_never_a_part_of_it() {
        assert_eq!(head(&b"12345"[..], 5).await.expect("read"), Some(b"12345".to_vec()));
        assert_eq!(head(&b"123456"[..], 5).await.expect("read"), None);
    }

    #[tokio::test]
    async fn the_end_of_stderr_is_kept_and_says_what_it_leaves_out() {
        let short = vec![b'x'; STDERR_LIMIT];
        assert_eq!(tail(&short[..]).await, short);
        let long: Vec<u8> = (0..STDERR_LIMIT * 5 + 3).map(|n| b'a' + (n % 26) as u8).collect();
        let kept = tail(&long[..]).await;
        let (first, rest) = kept.split_at(kept.iter().position(|byte| *byte == b'\n').expect("a line") + 1);
        assert_eq!(
            first,
            format!("[{} bytes before this are left out]\n", long.len() - STDERR_LIMIT).as_bytes()
        );
        assert_eq!(rest, &long[long.len() - STDERR_LIMIT..]);
    }
}
