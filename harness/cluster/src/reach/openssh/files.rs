//! Files over ssh: they come and go by sftp, go on where a connection broke, and count only once the node's digest is the
//! digest of what is here. On the node a file has another name until then.

mod receive;

pub(super) use receive::{fetch, get};

use super::channel::{self, chain, not_started};
use super::greeting::Greeting;
use super::{Node, OpenSsh};
use crate::reach::{Access, Command, ReachError, Status};
use base::digest::sha256;
use openssh::{Child, Session, Stdio};
use openssh_sftp_client::error::SftpErrorKind;
use openssh_sftp_client::file::File;
use openssh_sftp_client::metadata::Permissions;
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

pub(super) async fn put(reach: &OpenSsh, host: &str, path: &str, bytes: &[u8]) -> Result<(), ReachError> {
    let node = reach.node(host)?;
    let place = RemotePath::new(host, path)?;
    let here = sha256(bytes);
    // Its name says what it will be, so that what is there of it can be gone on with.
    let part = format!("{path}.{}.part", here.get(..12).unwrap_or_default());
    let mut patience = Patience::default();
    let mut takes = 0;
    let mut sent = Sent::default();
    loop {
        let had = sent.at;
        sent.no_folder = false;
        let done = async {
            reach
                .with_session(&node, path, async |session| {
                    send(&session, place, &part, bytes, &mut sent).await
                })
                .await?;
            if sent.no_folder {
                make_folder(reach, &node, place).await?;
                return Ok(false);
            }
            name(reach, &node, place, &part, &here).await
        }
        .await;
        match done {
            Ok(true) => return Ok(()),
            Ok(false) if takes < TAKES => takes += 1,
            Ok(false) => {
                return Err(
                    place.failed("cannot write", "the digest there differs from the sent file each time")
                );
            }
            Err(error) => patience.after(error, sent.begun, sent.at > had).await?,
        }
    }
}

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

/// What has become of a file that is sent.
#[derive(Default)]
struct Sent {
    begun: bool,
    /// How much of it has come there at most.
    at: usize,
    no_folder: bool,
}

async fn send(
    session: &Arc<Session>,
    place: RemotePath<'_>,
    part: &str,
    bytes: &[u8],
    sent: &mut Sent,
) -> Result<(), channel::Error> {
    let channel = Channel::open(session, place).await?;
    let opened = async {
        // It is part of the channel, which does not close before it is gone.
        let mut options = channel.sftp.options();
        options.read(true).write(true).create(true).open(part).await
    };
    let mut file = match channel.step(place, "cannot write", opened).await {
        Err(channel::Error::For(ReachError::NotFound { .. })) => {
            sent.no_folder = true;
            channel.close(None).await;
            return Ok(());
        }
        opened => opened?,
    };
    sent.begun = true;
    channel.step(place, "cannot set the permissions of", file.set_permissions(private())).await?;
    let lies = channel.step(place, "cannot write", file.metadata()).await?.len().unwrap_or_default();
    let mut at = match usize::try_from(lies) {
        Ok(lies) if lies <= bytes.len() => lies,
        _ => {
            channel.step(place, "cannot write", file.set_len(0)).await?;
            0
        }
    };
    while at < bytes.len() {
        go_to(&mut file, at as u64, place)?;
        let end = bytes.len().min(at + CHUNK as usize);
        let written = channel.step(place, "cannot write", file.write(&bytes[at..end])).await;
        match written {
            Ok(written) => {
                at += written;
                sent.at = sent.at.max(at);
            }
            Err(error) => return Err(channel.give_up(file, place, part, error).await),
        }
    }
    channel.close(Some(file)).await;
    Ok(())
}

/// For the user alone.
fn private() -> Permissions {
    let mut permissions = Permissions::new();
    permissions.set_read_by_owner(true).set_write_by_owner(true);
    permissions
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

    /// A write that the host refused: sftp does not say why, but a full disk can be seen. What was written of the file
    /// is of no use there.
    async fn give_up(
        self,
        file: File,
        place: RemotePath<'_>,
        part: &str,
        error: channel::Error,
    ) -> channel::Error {
        let channel::Error::For(ReachError::Failed { what, why }) = error else { return error };
        let mut fs = self.sftp.fs();
        let room = self.step(place, "cannot query the free space of", fs.statvfs(part)).await;
        let is_full = room.is_ok_and(|room| room.bavail == 0);
        let _ = self.step(place, "cannot remove", fs.remove_file(part)).await;
        drop(fs);
        self.close(Some(file)).await;
        let why = if is_full { "no space is left on its file system".to_owned() } else { why };
        channel::Error::For(ReachError::Failed { what, why })
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

async fn make_folder(reach: &OpenSsh, node: &Node, place: RemotePath<'_>) -> Result<(), ReachError> {
    let folder = match place.path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((folder, _)) => folder,
    };
    let argv = ["sh", "-c", "umask 077 && mkdir -p -- \"$1\"", "sh", folder];
    let answer = reach.exec_on(&node.name, &Command::new(argv, FOLDER_LIMIT)).await?;
    match answer.succeeded() {
        true => Ok(()),
        false => Err(place.failed("cannot create the folder of", answer.complaint())),
    }
}

/// What the host says where other bytes lie there than were sent.
const OTHER_BYTES: Status = Status::Code(9);

/// Gives a file its name, if it is complete.
async fn name(
    reach: &OpenSsh,
    node: &Node,
    place: RemotePath<'_>,
    part: &str,
    here: &str,
) -> Result<bool, ReachError> {
    let text = "there=$(sha256sum < \"$1\") || exit 1\n\
                if [ \"${there%% *}\" != \"$3\" ]; then rm -f -- \"$1\"; exit 9; fi\n\
                mv -fT -- \"$1\" \"$2\"";
    let argv = ["sh", "-c", text, "sh", part, place.path, here];
    let answer = reach.exec_on(&node.name, &Command::new(argv, DIGEST_LIMIT)).await?;
    match answer.status {
        Status::Code(0) => Ok(true),
        OTHER_BYTES => Ok(false),
        status => Err(place.failed("cannot rename", format!("{status}: {}", answer.complaint()))),
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
