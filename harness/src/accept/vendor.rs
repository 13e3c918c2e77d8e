//! A copy of a delivery for its vendor: every text without the names that show whose cluster it is, and nothing that is
//! no text. What a name is replaced by is `accept::pseudonyms`' business.

use super::certificate::VENDOR;
use super::contexts::contexts;
use super::delivery::{Delivery, RECORD, Stopped, machinery};
use super::hardware_numbers::{HardwareNumbers, NumberFinder};
use super::messages;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use store::{self, CHECKSUMS, Home, checksums};
use verdict::accept::pseudonyms::Pseudonyms;
use verdict::accept::site_names;

const LEFT_OUT: &str = "left-out.txt";
/// So much of a text is held, and then the rest of a line: no name goes beyond one.
const BLOCK: u64 = 1 << 20;
/// What has longer lines is no text.
const LONGEST_LINE: u64 = 64 << 20;

/// Gives the number of files that were written. Nothing is, where a name would be left in one.
pub(crate) fn write(home: &Home, delivery: &Delivery) -> Result<usize, Stopped> {
    let mut pseudonyms = known(home, delivery);
    let numbers = HardwareNumbers::read(delivery).finder().map_err(Stopped::Machinery)?;
    let target = delivery.folder.join(VENDOR);
    if target.exists() {
        fs::remove_dir_all(&target).map_err(machinery)?;
    }
    // How it was asked for is the buyer's own business.
    let own = [Path::new(CHECKSUMS), Path::new(RECORD)];
    let mut files = store::files(&delivery.folder).map_err(machinery)?;
    files.retain(|file| !own.contains(&file.as_path()));
    // Until the last one is checked it has another name.
    let part = tempfile::Builder::new().prefix(".vendor-").tempdir_in(&delivery.folder).map_err(machinery)?;
    let mut left_out = String::new();
    let mut written = 0;
    for file in files {
        let name = pseudonyms.text(&file.to_string_lossy());
        let from = delivery.folder.join(&file);
        match is_text(&from).map_err(machinery)? {
            true => {
                copy((&mut pseudonyms, &numbers), &from, &part.path().join(&name), &name)?;
                written += 1;
            }
            false => left_out.push_str(&format!("{name}: no text\n")),
        }
    }
    if let Some(left) = pseudonyms.first_left(&left_out) {
        return Err(Stopped::Machinery(messages::name_left(LEFT_OUT, left)));
    }
    let list = part.path().join(LEFT_OUT);
    store::write_private_by(&list, &mut |file| file.write_all(left_out.as_bytes())).map_err(machinery)?;
    let sums = checksums(part.path(), &[]).map_err(machinery)?;
    fs::rename(part.keep(), &target).map_err(machinery)?;
    delivery.write(&format!("{VENDOR}/{CHECKSUMS}"), sums.as_bytes())?;
    Ok(written + 1)
}

/// Copies a text with its names replaced; fails where one would be left in it, or in the name of the file.
fn copy(
    (pseudonyms, numbers): (&mut Pseudonyms, &NumberFinder),
    from: &Path,
    to: &Path,
    name: &str,
) -> Result<(), Stopped> {
    let mut left = pseudonyms.first_left(name).map(str::to_owned);
    let copied = store::write_private_by(to, &mut |out| {
        let mut reader = BufReader::new(File::open(from)?);
        while let Some(bytes) = next_block(&mut reader)? {
            let text = String::from_utf8(bytes).map_err(io::Error::other)?;
            let replaced = pseudonyms.text(&numbers.replaced(&text));
            left = left.take().or_else(|| pseudonyms.first_left(&replaced).map(str::to_owned));
            if left.is_some() {
                return Err(io::Error::other("a name would be left"));
            }
            out.write_all(replaced.as_bytes())?;
        }
        Ok(())
    });
    match left {
        Some(left) => Err(Stopped::Machinery(messages::name_left(name, &left))),
        None => copied.map_err(machinery),
    }
}

fn is_text(path: &Path) -> io::Result<bool> {
    let mut reader = BufReader::new(File::open(path)?);
    while let Some(bytes) = next_block(&mut reader)? {
        let is_cut = bytes.len() as u64 >= BLOCK + LONGEST_LINE;
        if is_cut || std::str::from_utf8(&bytes).map_or(true, |text| text.contains('\0')) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The next whole lines of a file; nothing behind its end.
fn next_block(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.by_ref().take(BLOCK).read_to_end(&mut bytes)?;
    reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
}

/// Whatever the inventory, this machine and the delivery call their own.
fn known(home: &Home, delivery: &Delivery) -> Pseudonyms {
    let mut pseudonyms = site_names::pseudonyms_for(&delivery.inventory);
    let folder = delivery.folder.canonicalize().unwrap_or_else(|_| delivery.folder.clone());
    for (other, name) in
        [("/delivery", folder.to_string_lossy()), ("/project", home.path().to_string_lossy())]
    {
        site_names::add(&mut pseudonyms, &delivery.inventory, other, &name);
    }
    let runs = fs::read_dir(delivery.folder.join("runs")).into_iter().flatten().flatten();
    let runs: Vec<PathBuf> = runs.map(|run| run.path()).collect();
    for (at, context) in contexts(runs.iter().map(PathBuf::as_path)).iter().enumerate() {
        site_names::add(&mut pseudonyms, &delivery.inventory, &format!("context-{}", at + 1), context);
    }
    pseudonyms
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_text_of_any_length_is_copied_by_blocks_of_whole_lines() {
        let line = "rank 3 of host-7.example.internal wrote 2 GB/s to /data/team/x\n";
        let text = line.repeat((3 << 20) / line.len());
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("log"), folder.path().join("copy"));
        fs::write(&from, &text).expect("written");
        let mut reader = Cursor::new(text.as_bytes());
        while let Some(bytes) = next_block(&mut reader).expect("read") {
            assert!(bytes.ends_with(b"\n") && bytes.len() as u64 <= BLOCK + 100, "{}", bytes.len());
        }
        assert!(is_text(&from).expect("read"));
        let mut pseudonyms = Pseudonyms::default();
        assert!(copy((&mut pseudonyms, &NumberFinder::default()), &from, &to, "log").is_ok());
        let copied = fs::read_to_string(&to).expect("there");
        assert!(copied == Pseudonyms::default().text(&text), "as if it were read in one go");
        assert!(!copied.contains("example.internal") && !copied.contains("/data/team"));
    }

    #[test]
    fn what_is_no_text_anywhere_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let mut bytes = vec![b'a'; 3 << 20];
        for (at, byte) in [(0, 0), (3 << 20, 0), (2 << 20, 0xff)] {
            bytes.insert(at, byte);
            fs::write(&path, &bytes).expect("written");
            assert!(!is_text(&path).expect("read"), "{at}");
            bytes.remove(at);
        }
        fs::write(&path, &bytes).expect("written");
        assert!(is_text(&path).expect("read"));
    }
}
