//! A file that comes from a host: checked before it is opened, read to its limit and no further, and complete.

use super::super::{Node, OpenSsh, channel};
use super::{CHUNK, Channel, DIGEST_LIMIT, Patience, RemotePath, TAKES, go_to};
use crate::reach::sink::{self, Sink};
use crate::reach::{Command, ReachError, left_file};
use base::digest::Sum;
use bytes::BytesMut;
use openssh::Session;
use openssh_sftp_client::metadata::MetaData;
use std::io;
use std::sync::Arc;

pub(crate) async fn get(reach: &OpenSsh, host: &str, path: &str) -> Result<Vec<u8>, ReachError> {
    let mut bytes = Vec::new();
    take(reach, host, path, left_file::held_limit(path), &mut bytes).await?;
    Ok(bytes)
}

pub(crate) async fn fetch(
    reach: &OpenSsh,
    host: &str,
    path: &str,
    sink: &mut dyn Sink,
) -> Result<u64, ReachError> {
    take(reach, host, path, left_file::limit(path), sink).await
}

async fn take(
    reach: &OpenSsh,
    host: &str,
    path: &str,
    limit: u64,
    sink: &mut dyn Sink,
) -> Result<u64, ReachError> {
    let node = reach.node(host)?;
    let place = RemotePath::new(host, path)?;
    for _ in 0..TAKES {
        let mut came = Came::new(limit, &mut *sink);
        let mut patience = Patience::default();
        loop {
            let had = came.bytes;
            let received = reach
                .with_session(&node, path, async |session| receive(&session, place, &mut came).await)
                .await;
            match received {
                Ok(()) => break,
                Err(error) => patience.after(error, had > 0, came.bytes > had).await?,
            }
        }
        let here = came.digest.to_hex();
        loop {
            match digest(reach, &node, place).await {
                Ok(there) if there == here => return Ok(came.bytes),
                Ok(_) => break,
                Err(error) => patience.after(error, true, false).await?,
            }
        }
    }
    Err(place.failed("cannot read", "its content changes with each read; something still writes it"))
}

/// What has come of a file.
struct Came<'a> {
    sink: &'a mut dyn Sink,
    limit: u64,
    bytes: u64,
    digest: Sum,
    /// Size and time of the file that it came from: the rest of another file is not the rest of this one.
    of: Option<(Option<u64>, Option<u32>)>,
}

impl<'a> Came<'a> {
    fn new(limit: u64, sink: &'a mut dyn Sink) -> Came<'a> {
        Came { sink, limit, bytes: 0, digest: Sum::default(), of: None }
    }

    fn restart(&mut self) -> io::Result<()> {
        (self.bytes, self.digest) = (0, Sum::default());
        self.sink.restart()
    }

    fn append(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.sink.append(chunk)?;
        self.bytes += chunk.len() as u64;
        self.digest.update(chunk);
        Ok(())
    }
}

async fn receive(
    session: &Arc<Session>,
    place: RemotePath<'_>,
    came: &mut Came<'_>,
) -> Result<(), channel::Error> {
    let refused = |why: String| channel::Error::For(place.failed("cannot read", why));
    let unwritten = |error| channel::Error::For(sink::unwritten(error));
    let channel = Channel::open(session, place).await?;
    let mut fs = channel.sftp.fs();
    // A link may lead to any file of the user; a device may have no end, and a pipe is waited for.
    let lies = channel.step(place, "cannot read", fs.symlink_metadata(place.path)).await?;
    readable(&lies, came.limit).map_err(refused)?;
    let (above, own) = left_file::split(place.path);
    let begins = channel.step(place, "cannot read", fs.canonicalize(above)).await?;
    let found = channel.step(place, "cannot read", fs.canonicalize(place.path)).await?;
    drop(fs);
    if found != begins.join(own) {
        return Err(refused(format!("a symbolic link leads to `{}`", found.display())));
    }
    let mut file = channel.step(place, "cannot read", channel.sftp.open(place.path)).await?;
    let facts = channel.step(place, "cannot read", file.metadata()).await?;
    readable(&facts, came.limit).map_err(refused)?;
    let of = (facts.len(), facts.modified().map(|time| time.into_raw()));
    if came.of.replace(of) != Some(of) {
        came.restart().map_err(unwritten)?;
    }
    loop {
        go_to(&mut file, came.bytes, place)?;
        let more = file.read(CHUNK, BytesMut::new());
        match channel.step(place, "cannot read", more).await? {
            Some(chunk) if !chunk.is_empty() => {
                let bytes = came.bytes + chunk.len() as u64;
                if bytes > came.limit {
                    return Err(refused(left_file::over_limit(bytes, came.limit)));
                }
                came.append(&chunk).map_err(unwritten)?;
            }
            _ => break,
        }
    }
    channel.close(Some(file)).await;
    Ok(())
}

fn readable(facts: &MetaData, limit: u64) -> Result<(), String> {
    match facts.file_type() {
        Some(kind) if kind.is_file() => {}
        Some(kind) if kind.is_dir() => return Err("it is a folder".to_owned()),
        _ => return Err("it is not a regular file, but a link, a pipe or a device".to_owned()),
    }
    match facts.len() {
        Some(bytes) if bytes > limit => Err(left_file::over_limit(bytes, limit)),
        _ => Ok(()),
    }
}

/// Prints the digest of a file that may be read: whose it and its folders are, and how many names it has, sftp does not say.
const DIGEST_SH: &str = concat!(
    include_str!("../../left_file.sh"),
    "check_left_file \"$1\" \"$2\" \"$3\" && sha256sum < \"$1\"\n"
);

fn digest_arguments(path: &str) -> [&str; 7] {
    let (above, own) = left_file::split(path);
    ["sh", "-c", DIGEST_SH, "digest", path, above, own]
}

/// The digest of a file as its host reads it.
async fn digest(reach: &OpenSsh, node: &Node, place: RemotePath<'_>) -> Result<String, ReachError> {
    let command = Command::new(digest_arguments(place.path), DIGEST_LIMIT);
    let answer = reach.exec_on(&node.name, &command).await?;
    if !answer.succeeded() {
        return Err(place.failed("cannot read", answer.complaint()));
    }
    Ok(answer.stdout_text().split(' ').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::digest::sha256;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    /// What the script says, run here.
    fn digest_here(path: &str) -> Result<String, String> {
        let argv = digest_arguments(path);
        let output = std::process::Command::new(argv[0]).args(&argv[1..]).output().expect("sh");
        match output.status.success() {
            true => {
                Ok(String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap_or_default().to_owned())
            }
            false => Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned()),
        }
    }

    #[test]
    fn a_file_of_another_user_or_in_a_folder_of_one_is_refused_over_ssh() {
        let there = tempfile::tempdir().expect("a folder");
        let path = |name: &str| there.path().join(name).display().to_string();
        fs::create_dir_all(path("disk/run/case/job")).expect("made");
        // An administrator may link what is above.
        symlink(path("disk"), path("fsx")).expect("linked");
        let file = path("fsx/run/case/job/a b");
        fs::write(&file, "x").expect("written");
        assert_eq!(digest_here(&file), Ok(sha256(b"x")));
        // Files of the system have a path of few names.
        assert!(digest_here("/etc/passwd").is_ok());
        fs::hard_link(&file, path("second")).expect("linked");
        assert_eq!(
            digest_here(&file),
            Err("it has 2 hard links, so it may be a file from elsewhere".to_owned())
        );
        fs::remove_file(path("second")).expect("there");
        symlink("a b", path("disk/run/case/job/link")).expect("linked");
        assert_eq!(digest_here(&path("fsx/run/case/job/link")), Err("it is a symbolic link".to_owned()));
        symlink("job", path("disk/run/case/moved")).expect("linked");
        let moved = digest_here(&path("fsx/run/case/moved/a b"));
        assert_eq!(moved, Err("a symbolic link stands in its path".to_owned()));
        // Only root can give a file away.
        if chown(&file, Some(65534), None).is_ok() {
            assert_eq!(digest_here(&file), Err("it belongs to user 65534, not to 0".to_owned()));
            chown(&file, Some(0), None).expect("given back");
            for level in ["run", "run/case", "run/case/job"] {
                let folder = path(&format!("fsx/{level}"));
                chown(&folder, Some(65534), None).expect("given away");
                assert_eq!(digest_here(&file), Err(format!("the folder `{folder}` belongs to user 65534")));
                chown(&folder, Some(0), None).expect("given back");
            }
            chown(path("disk"), Some(65534), None).expect("given away");
            assert_eq!(digest_here(&file), Ok(sha256(b"x")), "what is above is the administrator's");
        }
    }
}
