//! Entries of an archive, written below one folder and nowhere else. A package with an entry that would leave the folder,
//! by its name or by a link, is refused as a whole.

use nsys::regular_file;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use tar::{Archive, EntryType};

/// What is below a folder while an archive is unpacked into it.
pub(super) struct Below<'a> {
    folder: &'a Path,
    /// Made last, so that nothing is ever written through a link.
    links: Vec<(PathBuf, PathBuf)>,
    files: BTreeSet<PathBuf>,
}

impl<'a> Below<'a> {
    pub(super) fn new(folder: &'a Path) -> Below<'a> {
        Below { folder, links: Vec::new(), files: BTreeSet::new() }
    }

    pub(super) fn folder(&mut self, name: &[u8]) -> Result<(), String> {
        let name = inside(name)?;
        fs::create_dir_all(self.folder.join(&name)).map_err(|error| unwritten(&name, &error))
    }

    /// Programs stay programs; nothing else of the mode is taken over, nor the owner.
    pub(super) fn file(
        &mut self,
        name: &[u8],
        mode: u32,
        size: u64,
        from: &mut dyn Read,
    ) -> Result<(), String> {
        let name = self.fresh(name)?;
        let path = self.folder.join(&name);
        let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
        let open = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        let mut file = open.map_err(|error| unwritten(&name, &error))?;
        let copied = io::copy(from, &mut file);
        match copied {
            Ok(copied) if copied == size => Ok(()),
            Ok(_) => Err(format!("it is truncated (at `{}`)", name.display())),
            Err(error) => Err(format!(
                "it is truncated or damaged, or the disk is full ({error}, at `{}`)",
                name.display()
            )),
        }
    }

    pub(super) fn link(&mut self, name: &[u8], to: &[u8]) -> Result<(), String> {
        let name = self.fresh(name)?;
        let to = PathBuf::from(String::from_utf8(to.to_vec()).map_err(|_| "a link in it is not UTF-8")?);
        if !stays(&name, &to) {
            return Err(format!(
                "a link in it leads out of its folder (`{}` to `{}`)",
                name.display(),
                to.display()
            ));
        }
        self.links.push((name, to));
        Ok(())
    }

    /// A second name of a file that came before.
    pub(super) fn hard_link(&mut self, name: &[u8], of: &[u8]) -> Result<(), String> {
        let name = self.fresh(name)?;
        let of = inside(of)?;
        if !self.files.contains(&of) {
            return Err(format!(
                "a hard link in it refers to a file that does not precede it (`{}`)",
                of.display()
            ));
        }
        fs::hard_link(self.folder.join(&of), self.folder.join(&name))
            .map_err(|error| unwritten(&name, &error))
    }

    pub(super) fn finish(self) -> Result<(), String> {
        for (name, to) in self.links {
            symlink(to, self.folder.join(&name)).map_err(|error| unwritten(&name, &error))?;
        }
        Ok(())
    }

    fn fresh(&mut self, name: &[u8]) -> Result<PathBuf, String> {
        let name = inside(name)?;
        if name.as_os_str().is_empty() || !self.files.insert(name.clone()) {
            return Err(format!("a name in it is empty or duplicate (`{}`)", name.display()));
        }
        if let Some(folder) = self.folder.join(&name).parent() {
            fs::create_dir_all(folder).map_err(|error| unwritten(&name, &error))?;
        }
        Ok(name)
    }
}

pub(super) fn tar(from: impl Read, folder: &Path) -> Result<(), String> {
    let cut = |error: io::Error| format!("it is not an archive, truncated or damaged ({error})");
    let mut below = Below::new(folder);
    let mut archive = Archive::new(Tail { from, zeros: 0 });
    for entry in archive.entries().map_err(cut)? {
        let mut entry = entry.map_err(cut)?;
        let name = entry.path_bytes().into_owned();
        let to = entry.link_name_bytes().map(|to| to.into_owned()).unwrap_or_default();
        match entry.header().entry_type() {
            EntryType::Directory => below.folder(&name)?,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let mode = entry.header().mode().map_err(cut)?;
                let size = entry.size();
                below.file(&name, mode, size, &mut entry)?;
            }
            EntryType::Symlink => below.link(&name, &to)?,
            EntryType::Link => below.hard_link(&name, &to)?,
            EntryType::XGlobalHeader => {}
            _ => {
                let name = String::from_utf8_lossy(&name).into_owned();
                return Err(format!(
                    "it has an entry that is neither file, folder nor link (`{}`)",
                    name.escape_debug()
                ));
            }
        }
    }
    // What stands behind the last entry belongs to the stream's own check of itself.
    let mut tail = archive.into_inner();
    io::copy(&mut tail, &mut io::sink()).map_err(cut)?;
    if tail.zeros < END {
        return Err("it is truncated (its end marker is missing)".to_owned());
    }
    below.finish()
}

/// Two blocks of zeros are the end of a tar: without them it may have been cut between two entries.
const END: u64 = 1024;

/// Counts the zeros with which a stream ends.
struct Tail<R> {
    from: R,
    zeros: u64,
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        let got = into.get(..read).unwrap_or_default();
        let zeros = got.iter().rev().take_while(|byte| **byte == 0).count();
        self.zeros = if zeros == read { self.zeros + read as u64 } else { zeros as u64 };
        Ok(read)
    }
}

/// The name without `./`, if it stays below the folder.
fn inside(name: &[u8]) -> Result<PathBuf, String> {
    let text = std::str::from_utf8(name).map_err(|_| "a name in it is not UTF-8")?;
    let mut plain = PathBuf::new();
    for part in Path::new(text).components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::CurDir => {}
            _ => return Err(format!("an entry in it leads out of its folder (`{}`)", text.escape_debug())),
        }
    }
    if text.contains('\0') {
        return Err("a name in it has a NUL byte".to_owned());
    }
    Ok(plain)
}

/// Steps up stand first and are fewer than the folders above: then a link stays inside, whatever it meets on its way.
fn stays(name: &Path, to: &Path) -> bool {
    let depth = name.components().count().saturating_sub(1);
    let mut up = 0;
    let mut has_gone_down = false;
    for part in to.components() {
        match part {
            Component::ParentDir if has_gone_down => return false,
            Component::ParentDir => up += 1,
            Component::Normal(_) => has_gone_down = true,
            Component::CurDir => {}
            _ => return false,
        }
    }
    up <= depth && !to.as_os_str().is_empty()
}

fn unwritten(name: &Path, error: &io::Error) -> String {
    format!("cannot write an entry of it ({error}, at `{}`)", name.display())
}

/// Opens a file for reading; the error names its path.
pub(super) fn open(path: &Path) -> Result<File, String> {
    regular_file::open(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}
