//! A copy of a delivery for its vendor: every text without the names that show whose cluster it is, and nothing that is
//! no text. What a name is replaced by is `accept::pseudonyms`' business.

use super::certificate::VENDOR;
use super::delivery::{Delivery, RECORD, Stopped, machinery};
use super::messages;
use std::fs;
use std::path::Path;
use store::{self, CHECKSUMS, Home, checksums};
use verdict::accept::pseudonyms::Pseudonyms;
use verdict::accept::site_names;

const LEFT_OUT: &str = "left-out.txt";

/// Gives the number of files that were written. Nothing is, where a name would be left in one.
pub(crate) fn write(home: &Home, delivery: &Delivery) -> Result<usize, Stopped> {
    let mut pseudonyms = known(home, delivery);
    let target = delivery.folder.join(VENDOR);
    if target.exists() {
        fs::remove_dir_all(&target).map_err(machinery)?;
    }
    let mut left_out = String::new();
    let mut texts: Vec<(String, String)> = Vec::new();
    for file in store::files(&delivery.folder).map_err(machinery)? {
        // How it was asked for is the buyer's own business.
        if file == Path::new(CHECKSUMS) || file == Path::new(RECORD) {
            continue;
        }
        let name = pseudonyms.text(&file.to_string_lossy());
        let bytes = fs::read(delivery.folder.join(&file)).map_err(machinery)?;
        match String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) {
            Some(text) => texts.push((name, pseudonyms.text(&text))),
            None => left_out.push_str(&format!("{name}: no text\n")),
        }
    }
    texts.push((LEFT_OUT.to_owned(), left_out));
    for (name, text) in &texts {
        let left = pseudonyms.first_left(text).or_else(|| pseudonyms.first_left(name));
        if let Some(left) = left {
            return Err(Stopped::Machinery(messages::name_left(name, left)));
        }
    }
    for (name, text) in &texts {
        let path = target.join(name);
        store::write_private_by(&path, &mut |file| file.write_all(text.as_bytes())).map_err(machinery)?;
    }
    let sums = checksums(&target, &[]).map_err(machinery)?;
    delivery.write(&format!("{VENDOR}/{CHECKSUMS}"), sums.as_bytes())?;
    Ok(texts.len())
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
    pseudonyms
}
