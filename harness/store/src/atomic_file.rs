//! Files that appear whole or not at all: under a temporary name beside their own, then renamed. Those of runs are for
//! the user alone, whatever else new files are.

use super::StoreError;
use super::destination::Destination;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How the names of files begin that are not written to their end.
pub(crate) const UNFINISHED: &str = ".part-";

const PRIVATE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;

/// A file outside of runs, which others may read.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_whole_by(path, &mut |file| file.write_all(bytes))
}

/// The same for what is too large to be held at once.
pub fn write_whole_by(
    path: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), StoreError> {
    write_with(path, 0o644, &|folder| fs::create_dir_all(folder), write)
}

/// What a person named for output, and others may read: a file is replaced, also behind links, and a device, a pipe or an
/// open file gets the bytes.
pub fn write_output(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_output_by(path, &mut |file| file.write_all(bytes))
}

/// The same for what is too large to be held at once.
pub fn write_output_by(
    path: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), StoreError> {
    write_named(path, 0o644, write)
}

/// The same for the user alone, such as a bundle.
pub fn write_private_output_by(
    path: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), StoreError> {
    write_named(path, PRIVATE, write)
}

fn write_named(
    path: &Path,
    mode: u32,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), StoreError> {
    match Destination::find(path).map_err(|error| StoreError::at(path, error))? {
        Destination::File(path) => write_with(&path, mode, &|folder| fs::create_dir_all(folder), write),
        other => other.stream(write).map_err(|error| StoreError::at(path, error)),
    }
}

/// Fails where nothing can be written, as far as that is known before there is anything to write.
pub fn check_output(path: &Path) -> io::Result<()> {
    match Destination::find(path)? {
        Destination::File(path) if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Destination::File(path) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            tempfile::Builder::new().prefix(".part-").tempfile_in(folder).map(drop)
        }
        _ => Ok(()),
    }
}

/// Whether what is written there goes into a device, a pipe or an open file, and cannot be replaced by more.
pub fn is_stream(path: &Path) -> bool {
    !matches!(Destination::find(path), Ok(Destination::File(_)) | Err(_))
}

/// Takes away an earlier file of output that begins so. What is no regular file is left alone, and so is what this process
/// has open.
pub fn remove_earlier(path: &Path, begins: &str) -> io::Result<()> {
    let Ok(Destination::File(path)) = Destination::find(path) else { return Ok(()) };
    if !path.is_file() {
        return Ok(());
    }
    let mut head = Vec::new();
    let read = fs::File::open(&path).and_then(|file| file.take(begins.len() as u64).read_to_end(&mut head));
    match read.is_ok() && head == begins.as_bytes() {
        true => fs::remove_file(&path),
        false => Ok(()),
    }
}

/// A file of a run, for the user alone, and so are the folders that are made for it.
pub fn write_private_by(
    path: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), StoreError> {
    write_with(path, PRIVATE, &|folder| private(true).create(folder), write)
}

/// A folder that must not be there yet.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    private(false).create(folder)
}

/// For a file that is there already, or is made now and grows.
pub(crate) fn private_file() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
    options
}

pub(crate) fn private(all: bool) -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(all).mode(PRIVATE_FOLDER);
    builder
}

fn write_with(
    path: &Path,
    mode: u32,
    make: &dyn Fn(&Path) -> io::Result<()>,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), StoreError> {
    let written = (|| {
        let mut part = Part::begin_with(path, mode, make)?;
        write(&mut part)?;
        part.keep()
    })();
    written.map_err(|error| StoreError::at(path, error))
}

/// A file that is written piece by piece; one that is not kept leaves no leftovers.
pub struct Part {
    file: NamedTempFile,
    path: PathBuf,
    mode: u32,
}

impl Part {
    /// A file of a run, for the user alone.
    pub fn begin(path: &Path) -> io::Result<Part> {
        Part::begin_with(path, PRIVATE, &|folder| private(true).create(folder))
    }

    fn begin_with(path: &Path, mode: u32, make: &dyn Fn(&Path) -> io::Result<()>) -> io::Result<Part> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        make(folder)?;
        let file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        Ok(Part { file, path: path.to_owned(), mode })
    }

    /// Gives it its name; dropped without this, it is removed.
    pub fn keep(self) -> io::Result<()> {
        self.file.as_file().set_permissions(fs::Permissions::from_mode(self.mode))?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Home, Store};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn runs_are_for_the_user_alone_whatever_the_umask_and_other_files_are_not() {
        let home = tempfile::tempdir().expect("a folder");
        let store = Store::create(&Home::bare(home.path()), "run").expect("made");
        let case = store.case("c");
        store.write_json(&case.join("deep/verdict.json"), &1).expect("written");
        store.write(&case.join("metrics.parquet"), b"x").expect("written");
        store.event(&1).expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        for folder in [store.folder(), case.clone(), case.join("deep")] {
            assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        }
        for file in [
            case.join("deep/verdict.json"),
            case.join("metrics.parquet"),
            store.folder().join("events.jsonl"),
        ] {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        let elsewhere = home.path().join("junit.xml");
        write_whole(&elsewhere, b"x").expect("written");
        assert_eq!(mode(&elsewhere), 0o644);
    }
}
