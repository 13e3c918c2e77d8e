//! Files as they leave the site, in a bundle or to an object store: without the numbers of accounts of AWS, of which contexts of
//! EKS and images of ECR have one. Each byte stays in its place. The digests of files that are changed so, which artefacts and lists
//! of checksums have, are those of what leaves, so that whoever opens them finds them intact.

use base::digest::{Sum, sha256};
use base::redact::{WithoutAccounts, part_without_accounts};
use base::text::show;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use store::CHECKSUMS;

/// Of a file that lists digests. A larger one is no artefact.
const LONGEST_LIST: u64 = 64 << 20;
/// Hexadecimal digits of a digest.
const DIGEST: usize = 64;
/// Files, the artefact of their case, that of the run, and a list of checksums; and one in which nothing changes.
const MOST_ROUNDS: usize = 8;

/// The files of a folder.
pub(crate) struct Outgoing {
    /// By the digest of a file as it lies here, that of what leaves, where they differ.
    digests: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Outgoing {
    /// Reads all of them.
    pub(crate) fn from_files(folder: &Path, files: &[PathBuf]) -> io::Result<Outgoing> {
        let mut outgoing = Outgoing { digests: BTreeMap::new() };
        for name in files {
            let (here, leaves) = digests(&folder.join(name)).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", show(&name.to_string_lossy())))
            })?;
            if here != leaves {
                outgoing.digests.insert(here, leaves);
            }
        }
        if outgoing.digests.is_empty() {
            return Ok(outgoing);
        }
        // A list has its own digest in another one.
        for _ in 0..MOST_ROUNDS {
            let mut digests = outgoing.digests.clone();
            for name in files {
                let file = open_regular(&folder.join(name))?;
                if !lists_digests(name, &file)? {
                    continue;
                }
                let mut bytes = Vec::new();
                file.take(LONGEST_LIST).read_to_end(&mut bytes)?;
                let here = sha256(&bytes).into_bytes();
                let leaves = sha256(&outgoing.list(&bytes)?).into_bytes();
                if here != leaves {
                    digests.insert(here, leaves);
                }
            }
            if digests == outgoing.digests {
                return Ok(outgoing);
            }
            outgoing.digests = digests;
        }
        Err(io::Error::other("its files hold digests of one another in a circle"))
    }

    /// One of them from its beginning, of the same length.
    pub(crate) fn reader<'a>(&self, name: &Path, file: &'a File) -> io::Result<Box<dyn Read + 'a>> {
        if !self.changes_list(name, file)? {
            return Ok(Box::new(WithoutAccounts::new(file)));
        }
        let mut bytes = Vec::new();
        file.take(LONGEST_LIST).read_to_end(&mut bytes)?;
        Ok(Box::new(Cursor::new(self.list(&bytes)?)))
    }

    /// So many bytes of it from there, or fewer where it ends before.
    pub(crate) fn part(&self, name: &Path, file: &mut File, from: u64, most: u64) -> io::Result<Vec<u8>> {
        if !self.changes_list(name, file)? {
            return part_without_accounts(file, from, most);
        }
        let mut bytes = Vec::new();
        file.take(LONGEST_LIST).read_to_end(&mut bytes)?;
        let mut part = Cursor::new(self.list(&bytes)?);
        part.set_position(from);
        let mut bytes = Vec::new();
        part.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn changes_list(&self, name: &Path, file: &File) -> io::Result<bool> {
        Ok(!self.digests.is_empty() && lists_digests(name, file)?)
    }

    /// A list as it leaves.
    fn list(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut list = Vec::with_capacity(bytes.len());
        WithoutAccounts::new(bytes).read_to_end(&mut list)?;
        let mut at = 0;
        while at < list.len() {
            let is_hex = |byte: &&u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(*byte);
            let run = list[at..].iter().take_while(is_hex).count();
            let leaves = if run == DIGEST { self.digests.get(&list[at..at + DIGEST]) } else { None };
            if let Some(leaves) = leaves {
                list[at..at + DIGEST].copy_from_slice(leaves);
            }
            at += run + 1;
        }
        Ok(list)
    }
}

/// By its name, and its length, which stays the same.
fn lists_digests(name: &Path, file: &File) -> io::Result<bool> {
    let is_list = name.extension().is_some_and(|extension| extension == "json") || name.ends_with(CHECKSUMS);
    Ok(is_list && file.metadata()?.len() <= LONGEST_LIST)
}

/// Of a file as it lies here, and as it leaves.
fn digests(path: &Path) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut file = open_regular(path)?;
    let here = digest(&mut file)?;
    file.rewind()?;
    Ok((here, digest(&mut WithoutAccounts::new(file))?))
}

fn digest(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let (mut digest, mut some) = (Sum::default(), vec![0; 64 << 10]);
    loop {
        match reader.read(&mut some)? {
            0 => return Ok(digest.to_hex().into_bytes()),
            read => digest.update(&some[..read]),
        }
    }
}

/// Not through a link, and without waiting for whoever writes into a pipe.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn leaving(folder: &Path, files: &[PathBuf]) -> BTreeMap<PathBuf, Vec<u8>> {
        let outgoing = Outgoing::from_files(folder, files).expect("read");
        let one = |name: &PathBuf| {
            let mut file = open_regular(&folder.join(name)).expect("a file");
            let mut whole = Vec::new();
            outgoing.reader(name, &file).and_then(|mut file| file.read_to_end(&mut whole)).expect("read");
            let mut parts = Vec::new();
            loop {
                file.rewind().expect("rewound");
                let part = outgoing.part(name, &mut file, parts.len() as u64, 37).expect("read");
                if part.is_empty() {
                    break;
                }
                parts.extend_from_slice(&part);
            }
            assert!(whole == parts, "{}", name.display());
            (name.clone(), whole)
        };
        files.iter().map(one).collect()
    }

    /// As a run has them: what was collected, the list of it, and the list of the run's artefacts.
    #[test]
    fn digests_of_files_that_lose_an_account_are_those_of_what_leaves() {
        let folder = tempfile::tempdir().expect("a folder");
        let arn = "context arn:aws:eks:us-west-2:123456789012:cluster/x\n";
        let [raw, collected, run, other] =
            ["log", "collected.json", "run.json", "cluster.json"].map(PathBuf::from);
        let listed =
            format!("{{\"sha256\":\"{}\",\"other\":\"{}\"}}", sha256(arn.as_bytes()), "0".repeat(64));
        let of_run = format!("{{\"collected.json\":\"{}\"}}", sha256(listed.as_bytes()));
        for (name, text) in
            [(&raw, arn), (&collected, listed.as_str()), (&run, of_run.as_str()), (&other, "{}")]
        {
            fs::write(folder.path().join(name), text).expect("written");
        }
        let files = [run.clone(), raw.clone(), collected.clone(), other.clone()];
        let leaves = leaving(folder.path(), &files);
        assert_eq!(leaves[&raw], b"context arn:aws:eks:us-west-2:************:cluster/x\n");
        let text = |name: &PathBuf| String::from_utf8_lossy(&leaves[name]).into_owned();
        assert!(text(&collected).contains(&sha256(&leaves[&raw])), "{}", text(&collected));
        assert!(text(&collected).contains(&"0".repeat(64)) && text(&collected).len() == listed.len());
        assert_eq!(text(&run), format!("{{\"collected.json\":\"{}\"}}", sha256(&leaves[&collected])));
        assert_eq!(leaves[&other], b"{}");
        // What has left once leaves as it is.
        for (name, bytes) in &leaves {
            fs::write(folder.path().join(name), bytes).expect("written");
        }
        assert!(leaving(folder.path(), &files) == leaves);
    }
}
