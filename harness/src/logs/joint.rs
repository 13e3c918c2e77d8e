//! The files of one job, which are read whole into one reader, and the exit code that comes of them.

use super::{bytes, visible};
use model::exit_code;
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

/// How reading them went.
pub(super) struct JointFiles {
    all_open: bool,
    all_read: bool,
}

impl JointFiles {
    /// Says on stderr which cannot be opened, are larger than `most` bytes, or are refused by the reader.
    pub(super) fn read<E: Display>(
        paths: &[PathBuf],
        most: usize,
        err: &mut dyn Write,
        mut reader: impl FnMut(&[u8], &str) -> Result<(), E>,
    ) -> JointFiles {
        let mut files = JointFiles { all_open: true, all_read: true };
        for path in paths {
            let file = path.display().to_string();
            let bytes = match bytes(path, most) {
                Ok(bytes) => bytes,
                Err(error) => {
                    files.all_open = false;
                    // A closed stderr is no error of the verb.
                    let _ = writeln!(err, "{}: cannot be read: {error}", visible(&file));
                    continue;
                }
            };
            if let Err(why) = reader(&bytes, &file) {
                files.all_read = false;
                let _ = writeln!(err, "{}: {}", visible(&file), visible(&why.to_string()));
            }
        }
        files
    }

    /// 2 where one cannot be opened, then 1 where findings are to fail, then 3 where one is not what it should be.
    pub(super) fn exit_code(&self, findings_fail: bool) -> i32 {
        match () {
            () if !self.all_open => exit_code::USAGE,
            () if findings_fail => exit_code::FAILED,
            () if !self.all_read => exit_code::INCONCLUSIVE,
            () => exit_code::PASSED,
        }
    }
}

/// As they are named together.
pub(super) fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> =
        paths.iter().map(AsRef::<Path>::as_ref).map(|path| path.display().to_string()).collect();
    names.join(" ")
}
