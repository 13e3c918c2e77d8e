//! Files over ssh: they come and go by sftp, go on where a connection broke, and count only once the node's digest is the
//! digest of what is here. On the node a file has another name until then.

mod receive;
mod send;

pub(super) use receive::{fetch, get};
pub(super) use send::put;

use super::channel::{self, chain, not_started};
use super::greeting::Greeting;
use crate::reach::{Access, ReachError};
use openssh::{Child, Session, Stdio};
use openssh_sftp_client::error::SftpErrorKind;
use openssh_sftp_client::file::File;
use openssh_sftp_client::{Error, Sftp, SftpOptions};
use std::io::SeekFrom;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncSeek;
use tokio::time::timeout;

/// A transfer whose connection broke goes on after these pauses, which restart whenever more has come.
const PAUSES: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(10), Duration::from_secs(20)];
/// How often a file is re-sent whose digest differs.
const TAKES: usize = 3;
/// How long the answer to one request of sftp may take.
const STEP_LIMIT: Duration = Duration::from_secs(30);
/// How long a node may take to read a whole file for its digest.
const DIGEST_LIMIT: Duration = Duration::from_secs(600);
/// How long a channel may take to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
const FOLDER_LIMIT: Duration = Duration::from_secs(30);
/// Asked for at once; the host gives less where it gives less.
const CHUNK: u32 = 256 << 10;

/// A file on a host, for messages.
#[derive(Clone, Copy)]
struct RemotePath<'a> {
    host: &'a str,
    path: &'a str,
}

impl<'a> RemotePath<'a> {
    /// A path that no file can have never leaves this machine; a relative one would mean the home of whoever logs in.
    fn new(host: &'a str, path: &'a str) -> Result<RemotePath<'a>, ReachError> {
        let place = RemotePath { host, path };
        match path.starts_with('/') && !path.contains('\0') {
            true => Ok(place),
            false => Err(ReachError::Failed {
                what: format!("a file on {host}"),
                why: format!("its path must begin with `/` and hold no zero byte: {path:?}"),
            }),
        }
    }

    fn failed(self, verb: &str, why: impl Into<String>) -> ReachError {
        ReachError::Failed { what: format!("{verb} `{}` on {}", self.path, self.host), why: why.into() }
    }

    fn lost(self, why: &str) -> ReachError {
        let why = format!("the connection was lost during `{}`: {why}", self.path);
        ReachError::Unreachable { host: self.host.to_owned(), why }
    }
}

/// What a broken transfer may wait for.
struct Patience(std::slice::Iter<'static, Duration>);

impl Default for Patience {
    fn default() -> Self {
        Patience(PAUSES.iter())
    }
}

impl Patience {
    /// Waits for the next attempt, or gives the error back: a host that has never answered is left to the caller.
    async fn after(&mut self, error: ReachError, begun: bool, further: bool) -> Result<(), ReachError> {
        if !matches!(error, ReachError::Unreachable { .. }) || !(begun || further) {
            return Err(error);
        }
        if further {
            *self = Patience::default();
        }
        let Some(pause) = self.0.next() else { return Err(error) };
        tokio::time::sleep(*pause).await;
        Ok(())
    }
}

/// Reading moves on by what was asked for, not by what came: the place is set each time.
fn go_to(file: &mut File, at: u64, place: RemotePath<'_>) -> Result<(), channel::Error> {
    Pin::new(file)
        .start_seek(SeekFrom::Start(at))
        .map_err(|error| channel::Error::For(place.failed("cannot seek in", error.to_string())))
}

/// One channel of sftp.
struct Channel {
    sftp: Sftp,
    child: Child<Arc<Session>>,
}

impl Channel {
    async fn open(session: &Arc<Session>, place: RemotePath<'_>) -> Result<Channel, channel::Error> {
        let mut command = Session::to_subsystem(session.clone(), "sftp");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().await.map_err(|error| not_started(error, place.host))?;
        let (Some(stdin), Some(stdout)) = (child.stdin().take(), child.stdout().take()) else {
            return Err(channel::Error::For(place.lost("sftp has no pipes")));
        };
        let options = SftpOptions::new().flush_interval(Duration::ZERO);
        let (stdout, greeting) = Greeting::new(stdout);
        let begun = timeout(STEP_LIMIT, Sftp::new(stdin, stdout, options)).await;
        let no_access = |why: String| {
            channel::Error::For(ReachError::NoAccess { by: Access::Ssh, host: place.host.to_owned(), why })
        };
        match (begun, greeting.line()) {
            (Ok(Ok(sftp)), _) => Ok(Channel { sftp, child }),
            (_, Some(line)) => Err(no_access(format!("it offers no sftp; it printed: {line}"))),
            (Ok(Err(error)), None) if session.check().await.is_ok() => {
                let why =
                    format!("it offers no sftp (`Subsystem sftp` in its sshd_config): {}", chain(&error));
                Err(no_access(why))
            }
            (Ok(Err(error)), None) => Err(channel::Error::For(place.lost(&chain(&error)))),
            (Err(_), None) => Err(channel::Error::For(place.lost("sftp gave no answer"))),
        }
    }

    /// One request and its answer.
    async fn step<T>(
        &self,
        place: RemotePath<'_>,
        verb: &str,
        request: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, channel::Error> {
        let error = match timeout(STEP_LIMIT, request).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(Error::SftpError(SftpErrorKind::NoSuchFile, _))) => {
                ReachError::NotFound { path: place.path.to_owned() }
            }
            Ok(Err(Error::SftpError(SftpErrorKind::PermDenied, _))) => {
                place.failed(verb, "permission denied")
            }
            Ok(Err(Error::SftpError(kind, message))) => place.failed(verb, format!("{kind:?}: {message}")),
            Ok(Err(error)) => place.lost(&chain(&error)),
            Err(_) => place.lost(&format!("no answer within {} s", STEP_LIMIT.as_secs())),
        };
        Err(channel::Error::For(error))
    }

    async fn close(self, file: Option<File>) {
        let Channel { sftp, child } = self;
        // What was to be done is done: an end that fails changes nothing.
        if let Some(file) = file {
            let _ = timeout(CLOSE_LIMIT, file.close()).await;
        }
        let _ = timeout(CLOSE_LIMIT, sftp.close()).await;
        let _ = timeout(CLOSE_LIMIT, child.wait()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_transfer_that_goes_on_has_patience_and_one_that_never_began_has_none() {
        let lost = || ReachError::Unreachable { host: "n1".into(), why: "gone".into() };
        let mut patience = Patience::default();
        assert_eq!(patience.after(lost(), false, false).await, Err(lost()));
        for _ in 0..2 {
            // Whatever more came, three attempts follow that bring nothing.
            for further in [true, false, false] {
                assert_eq!(patience.after(lost(), true, further).await, Ok(()));
            }
        }
        assert_eq!(patience.after(lost(), true, false).await, Err(lost()));
        let failed = ReachError::NotFound { path: "/x".into() };
        assert_eq!(patience.after(failed.clone(), true, true).await, Err(failed));
    }

    #[test]
    fn a_path_that_no_file_has_or_that_means_another_place_is_refused() {
        for path in ["", "x", "~/x", "../x", "/a\0b"] {
            assert!(RemotePath::new("n1", path).is_err(), "{path:?}");
        }
        assert!(RemotePath::new("n1", "/a b\n$(c)").is_ok());
    }
}
