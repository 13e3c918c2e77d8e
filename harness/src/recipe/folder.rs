//! The folder that tables are written to: its name with `%` sequences filled in, and never overwritten unasked.

use std::io;
use std::path::{Path, PathBuf};

pub(super) struct Folder {
    path: PathBuf,
    replaces: bool,
}

impl Folder {
    /// `%q{NAME}` is a variable of the environment, `%h` the machine's name, `%p` the process, `%n` the least number from
    /// 1 that makes a name not yet taken, `%%` a percent sign.
    pub(super) fn new(written: &str, overwrite: bool) -> Result<Folder, String> {
        let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
        let words = |variable: &str| std::env::var(variable).ok();
        let path = named(written, &words, host().ok().as_deref(), &|path| path.exists())?;
        if path.exists() && !overwrite {
            return Err(format!("`{}` already exists; `--force-overwrite` replaces it", path.display()));
        }
        Ok(Folder { replaces: path.exists(), path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces an existing folder if requested; never removes anything but a folder.
    pub(super) fn make(&self) -> io::Result<()> {
        if self.replaces {
            std::fs::remove_dir_all(&self.path)?;
        }
        std::fs::create_dir_all(&self.path)
    }
}

/// The limit of the number for `%n`.
const MOST: u32 = 100_000;

fn named(
    written: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    host: Option<&str>,
    is_taken: &dyn Fn(&Path) -> bool,
) -> Result<PathBuf, String> {
    let with = |number: u32| -> Result<(String, bool), String> {
        let (mut name, mut counts) = (String::new(), false);
        let mut rest = written;
        while let Some((before, behind)) = rest.split_once('%') {
            name.push_str(before);
            let mut letters = behind.chars();
            match letters.next() {
                Some('%') => name.push('%'),
                Some('p') => name.push_str(&std::process::id().to_string()),
                Some('h') => name.push_str(host.ok_or("`%h`: the name of this machine cannot be read")?),
                Some('n') => {
                    counts = true;
                    name.push_str(&number.to_string());
                }
                Some('q') if behind[1..].starts_with('{') => {
                    let (asked, _) = behind[2..].split_once('}').ok_or("`%q{` without `}`")?;
                    let value =
                        variable(asked).ok_or_else(|| format!("`%q{{{asked}}}`: the variable is not set"))?;
                    name.push_str(&value);
                    letters = behind[3 + asked.len()..].chars();
                }
                _ => {
                    return Err(format!(
                        "unknown `%` sequence in `{written}`; known: `%q{{NAME}}`, `%h`, `%p`, `%n`, `%%`"
                    ));
                }
            }
            rest = letters.as_str();
        }
        name.push_str(rest);
        Ok((name, counts))
    };
    for number in 1..MOST {
        let (name, counts) = with(number)?;
        if name.is_empty() {
            return Err("the name of the folder is empty".to_owned());
        }
        let path = PathBuf::from(name);
        if !counts || !is_taken(&path) {
            return Ok(path);
        }
    }
    Err(format!("`{written}`: every number up to {MOST} is taken"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named_folder(written: &str) -> Result<String, String> {
        let variable = |name: &str| (name == "JOB").then(|| "17".to_owned());
        let taken = |path: &Path| path == Path::new("out-1") || path == Path::new("out-2");
        named(written, &variable, Some("n1"), &taken).map(|path| path.display().to_string())
    }

    #[test]
    fn placeholders_of_the_name_are_filled_in() {
        assert_eq!(named_folder("out-%n").as_deref(), Ok("out-3"));
        assert_eq!(named_folder("new-%n").as_deref(), Ok("new-1"));
        assert_eq!(named_folder("a%%b-%h-%q{JOB}x").as_deref(), Ok("a%b-n1-17x"));
        assert_eq!(named_folder("plain").as_deref(), Ok("plain"));
        assert_eq!(named_folder("%p"), Ok(std::process::id().to_string()));
        for wrong in ["", "%", "a%z", "%q{JOB", "%q{NONE}", "%q"] {
            assert!(named_folder(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_there_already_is_replaced_only_where_that_was_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let there = folder.path().join("there");
        std::fs::create_dir_all(&there).expect("made");
        std::fs::write(there.join("old"), "").expect("written");
        let name = there.display().to_string();
        assert!(Folder::new(&name, false).is_err());
        Folder::new(&name, true).expect("asked for").make().expect("made");
        assert!(there.is_dir() && !there.join("old").exists());
    }
}
