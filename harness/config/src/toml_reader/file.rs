//! The text of a file that a person wrote. Folders of a pull request may hold anything under such a name: a pipe would
//! never end, a device would fill the memory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Far more than any person writes.
const MOST_BYTES: u64 = 4 << 20;

/// The name of a file without its folder and `.toml`.
pub(crate) fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// Of a regular file of at most 4 MiB; anything else is an error.
pub fn read(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no text in UTF-8; save it as UTF-8"))
}

/// The same, in whatever encoding it is.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Asked again of what is open: it may have become another between the two.
    regular(&fs::metadata(path)?)?;
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    regular(&file.metadata()?)?;
    whole(file)
}

/// Half of a file that grew since it was looked at could read as a whole one: with the first of its baselines alone.
fn whole(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(io::Error::other(format!(
            "larger than {} MiB, or growing while it is read",
            MOST_BYTES >> 20
        ))),
        false => Ok(bytes),
    }
}

fn regular(data: &fs::Metadata) -> io::Result<()> {
    let size = data.len();
    match (data.is_file(), size > MOST_BYTES) {
        (false, _) if data.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        (false, _) => Err(io::Error::other("not a regular file")),
        (true, true) => Err(io::Error::other(format!("larger than {} MiB: {size} bytes", MOST_BYTES >> 20))),
        (true, false) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml_reader::folder;
    use nix::sys::stat::Mode;
    use std::os::unix::fs::symlink;

    const TEXT: &str = "about = \"a file\"\n";

    /// What may lie under the name of a suite or an inventory, and why it is refused; nothing where it is read.
    type Case = (&'static str, fn(&Path), Option<&'static str>);

    fn sparse(path: &Path, bytes: u64) {
        File::create(path).and_then(|file| file.set_len(bytes)).expect("a sparse file");
    }

    const CASES: [Case; 9] = [
        ("a file", |path| fs::write(path, TEXT).expect("written"), None),
        (
            "a link to a file",
            |path| {
                let other = path.with_extension("other");
                fs::write(&other, TEXT).expect("written");
                symlink(other, path).expect("a link");
            },
            None,
        ),
        ("as much as is read", |path| sparse(path, MOST_BYTES), None),
        ("a byte more", |path| sparse(path, MOST_BYTES + 1), Some("larger than 4 MiB: 4194305 bytes")),
        (
            "far more than the machine has",
            |path| sparse(path, 1 << 40),
            Some("larger than 4 MiB: 1099511627776 bytes"),
        ),
        (
            "a link to a device",
            |path| symlink("/dev/zero", path).expect("a link"),
            Some("not a regular file"),
        ),
        (
            "a FIFO",
            |path| nix::unistd::mkfifo(path, Mode::S_IRWXU).expect("a FIFO"),
            Some("not a regular file"),
        ),
        ("a folder", |path| fs::create_dir(path).expect("a folder"), Some("is a directory")),
        (
            "no text",
            |path| fs::write(path, [0xff, 0xfe, 0]).expect("written"),
            Some("no text in UTF-8; save it as UTF-8"),
        ),
    ];

    #[test]
    fn a_file_that_grows_while_it_is_read_is_not_cut_to_its_beginning() {
        let why = whole(io::repeat(b'#')).expect_err("endless").to_string();
        assert!(why.contains("larger than 4 MiB"), "{why}");
        assert_eq!(whole(io::repeat(b'#').take(MOST_BYTES)).expect("read").len() as u64, MOST_BYTES);
    }

    #[test]
    fn what_is_no_regular_file_of_a_person_s_size_is_refused_with_one_error() {
        for (what, make, why) in CASES {
            let home = tempfile::tempdir().expect("a folder");
            for name in ["suites", "inventory"] {
                fs::create_dir(home.path().join(name)).expect("a folder");
                let path = home.path().join(name).join("x.toml");
                make(&path);
                let read = read(&path).map_err(|error| error.to_string());
                assert_eq!(read.err().as_deref(), why, "{what}");
                let (texts, diagnostics) = folder::texts(home.path(), name);
                let messages: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
                match why {
                    None => assert_eq!((texts.len(), messages.len()), (1, 0), "{what}: {messages:?}"),
                    Some(why) => {
                        assert_eq!((texts.len(), messages.len()), (0, 1), "{what}: {messages:?}");
                        let expected = [format!("{name}/x.toml"), format!("cannot be read: {why}")];
                        assert!(expected.iter().all(|it| messages[0].contains(it)), "{what}: {messages:?}");
                    }
                }
            }
        }
    }
}
