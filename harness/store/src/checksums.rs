//! The digests of a delivery's files as `sha256sum -c` reads them: one line for each, by its path in the folder.

use super::{StoreError, files};
use base::digest::sha256_of_file;
use std::path::Path;

/// Lies in the folder whose files it lists.
pub const CHECKSUMS: &str = "SHA256SUMS";

/// Of every file in the folder but this one and those below what is left out.
pub fn checksums(folder: &Path, left_out: &[&str]) -> Result<String, StoreError> {
    let mut text = String::new();
    for file in files(folder)? {
        if file == Path::new(CHECKSUMS) || left_out.iter().any(|name| file.starts_with(name)) {
            continue;
        }
        let path = folder.join(&file);
        let digest = sha256_of_file(&path).map_err(|error| StoreError::other(&path, &error))?;
        text.push_str(&line(&digest, &file.to_string_lossy()));
    }
    Ok(text)
}

/// A name with a backslash or a line's end in it is escaped, and the line says so by its first character.
fn line(digest: &str, name: &str) -> String {
    match name.contains(['\\', '\n', '\r']) {
        false => format!("{digest}  {name}\n"),
        true => {
            let escaped = name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
            format!("\\{digest}  {escaped}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_line_but_the_list_itself_and_what_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["runs/a/plan.json", "acceptance.md", CHECKSUMS, "vendor/acceptance.md"] {
            super::super::write_whole(&folder.path().join(name), b"x").expect("written");
        }
        let digest = base::digest::sha256(b"x");
        let wanted = format!("{digest}  acceptance.md\n{digest}  runs/a/plan.json\n");
        assert_eq!(checksums(folder.path(), &["vendor"]).expect("read"), wanted);
        assert_eq!(line("d", "a\\b"), "\\d  a\\\\b\n");
    }
}
