//! A file that goes to a host: written under names that are made new, so that no link is followed, and complete under
//! its own.

use super::super::channel;
use super::super::{Node, OpenSsh};
use super::{CHUNK, Channel, DIGEST_LIMIT, FOLDER_LIMIT, Patience, RemotePath, TAKES, go_to};
use crate::reach::{Command, ReachError, Status, left_file};
use base::digest::sha256;
use openssh::Session;
use openssh_sftp_client::file::File;
use openssh_sftp_client::metadata::Permissions;
use std::sync::Arc;

pub(crate) async fn put(reach: &OpenSsh, host: &str, path: &str, bytes: &[u8]) -> Result<(), ReachError> {
    let node = reach.node(host)?;
    let place = RemotePath::new(host, path)?;
    let here = sha256(bytes);
    // Its name says what it will be.
    let part = format!("{path}.{}", here.get(..12).unwrap_or_default());
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
            name(reach, &node, place, &part, &here, &sent.pieces).await
        }
        .await;
        match done {
            Ok(true) => return Ok(()),
            Ok(false) if takes < TAKES => {
                takes += 1;
                sent.pieces.clear();
            }
            Ok(false) => {
                return Err(
                    place.failed("cannot write", "the digest there differs from the sent file each time")
                );
            }
            Err(error) => patience.after(error, sent.begun, sent.at > had).await?,
        }
    }
}

/// What has become of a file that is sent.
#[derive(Default)]
struct Sent {
    begun: bool,
    /// How much of it has come there at most.
    at: usize,
    no_folder: bool,
    /// What lies there of it, one for each connection, and where in the file each begins. A piece is never opened again:
    /// a job could have put a link in its place. The digest is of all pieces together.
    pieces: Vec<(String, usize)>,
}

async fn send(
    session: &Arc<Session>,
    place: RemotePath<'_>,
    part: &str,
    bytes: &[u8],
    sent: &mut Sent,
) -> Result<(), channel::Error> {
    let channel = Channel::open(session, place).await?;
    let piece = format!("{part}.{}.part", sent.pieces.len());
    let opened = async {
        channel.check_folder(place).await?;
        let lies = channel.lies(place, sent, bytes.len()).await?;
        let mut fs = channel.sftp.fs();
        match channel.step(place, "cannot replace", fs.remove_file(&piece)).await {
            Ok(()) | Err(channel::Error::For(ReachError::NotFound { .. })) => {}
            Err(error) => return Err(error),
        }
        // It is part of the channel, which does not close before it is gone.
        let mut options = channel.sftp.options();
        options.write(true).create_new(true);
        Ok((channel.step(place, "cannot write", options.open(&piece)).await?, lies))
    };
    let (mut file, begin) = match opened.await {
        Err(channel::Error::For(ReachError::NotFound { .. })) => {
            *sent = Sent { no_folder: true, pieces: Vec::new(), ..*sent };
            channel.close(None).await;
            return Ok(());
        }
        opened => opened?,
    };
    sent.begun = true;
    sent.pieces.push((piece, begin));
    channel.step(place, "cannot set the permissions of", file.set_permissions(private())).await?;
    let mut at = begin;
    while at < bytes.len() {
        go_to(&mut file, (at - begin) as u64, place)?;
        let end = bytes.len().min(at + CHUNK as usize);
        let written = channel.step(place, "cannot write", file.write(&bytes[at..end])).await;
        match written {
            Ok(written) => {
                at += written;
                sent.at = sent.at.max(at);
            }
            Err(error) => return Err(channel.give_up(file, place, sent, error).await),
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

impl Channel {
    /// No link may stand in what is the run's own of a path, or the file would lie elsewhere.
    async fn check_folder(&self, place: RemotePath<'_>) -> Result<(), channel::Error> {
        let (above, own) = left_file::split(place.path);
        let mut fs = self.sftp.fs();
        let begins = self.step(place, "cannot write", fs.canonicalize(above)).await?;
        let Some((folder, _)) = place.path.rsplit_once('/').filter(|(folder, _)| !folder.is_empty()) else {
            return Ok(());
        };
        let found = self.step(place, "cannot write", fs.canonicalize(folder)).await?;
        let wanted = own.rsplit_once('/').map_or(begins.clone(), |(names, _)| begins.join(names));
        match found == wanted {
            true => Ok(()),
            false => {
                let why = format!("a symbolic link leads to `{}`", found.display());
                Err(channel::Error::For(place.failed("cannot write", why)))
            }
        }
    }

    /// How much of a file lies there. Its last piece says so; where that has another size than it can have, nothing does.
    async fn lies(&self, place: RemotePath<'_>, sent: &Sent, most: usize) -> Result<usize, channel::Error> {
        let Some((last, begin)) = sent.pieces.last() else { return Ok(0) };
        let mut fs = self.sftp.fs();
        let facts = self.step(place, "cannot write", fs.symlink_metadata(last)).await?;
        let length = facts.len().and_then(|length| usize::try_from(length).ok());
        let lies = length.and_then(|length| begin.checked_add(length)).filter(|lies| *lies <= most);
        // As if it were not there: all of it is sent again.
        lies.ok_or_else(|| channel::Error::For(ReachError::NotFound { path: last.clone() }))
    }

    /// A write that the host refused: sftp does not say why, but a full disk can be seen. What was written of the file
    /// is of no use there.
    async fn give_up(
        self,
        file: File,
        place: RemotePath<'_>,
        sent: &Sent,
        error: channel::Error,
    ) -> channel::Error {
        let channel::Error::For(ReachError::Failed { what, why }) = error else { return error };
        let mut fs = self.sftp.fs();
        let part = sent.pieces.last().map_or(place.path, |(piece, _)| piece);
        let room = self.step(place, "cannot query the free space of", fs.statvfs(part)).await;
        let is_full = room.is_ok_and(|room| room.bavail == 0);
        for (piece, _) in &sent.pieces {
            let _ = self.step(place, "cannot remove", fs.remove_file(piece)).await;
        }
        drop(fs);
        self.close(Some(file)).await;
        let why = if is_full { "no space is left on its file system".to_owned() } else { why };
        channel::Error::For(ReachError::Failed { what, why })
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

/// Gives a file its name, if its pieces are all of it. `set -C` writes to no file that is there.
const NAME_SH: &str = r#"path=$1 sum=$2 part=$3
shift 3
if [ "$#" -gt 1 ]; then
  rm -f -- "$part.part" && (umask 077 && set -C && cat -- "$@" > "$part.part") || exit 1
  set -- "$part.part"
fi
there=$(sha256sum < "$1") || exit 1
if [ "${there%% *}" != "$sum" ]; then
  rm -f -- "$part".*part
  exit 9
fi
mv -fT -- "$1" "$path" && rm -f -- "$part".*part
"#;

async fn name(
    reach: &OpenSsh,
    node: &Node,
    place: RemotePath<'_>,
    part: &str,
    here: &str,
    pieces: &[(String, usize)],
) -> Result<bool, ReachError> {
    let pieces = pieces.iter().map(|(piece, _)| piece.as_str());
    let argv: Vec<&str> =
        ["sh", "-c", NAME_SH, "sh", place.path, here, part].into_iter().chain(pieces).collect();
    let answer = reach.exec_on(&node.name, &Command::new(argv, DIGEST_LIMIT)).await?;
    match answer.status {
        Status::Code(0) => Ok(true),
        OTHER_BYTES => Ok(false),
        status => Err(place.failed("cannot rename", format!("{status}: {}", answer.complaint()))),
    }
}
