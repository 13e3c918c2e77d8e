//! What a page says of itself, in its head, so that an index can be made of pages alone.

use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct About {
    pub format: u32,
    pub recipe: String,
    pub title: String,
    pub about: String,
    pub asked: String,
    /// How many reports there were, and which hosts they are of.
    pub reports: usize,
    pub hosts: Vec<String>,
    pub notes: usize,
    pub unreadable: usize,
    pub simulated: bool,
    /// The titles of its pictures.
    pub pictures: Vec<String>,
    pub tables: usize,
}

/// The version of this text.
pub(super) const FORMAT: u32 = 1;
/// How the element begins that holds it, and how it ends.
pub(super) const BEGIN: &str = "<script type=\"application/json\" id=\"about\">";
pub(super) const END: &str = "</script>";
/// It stands this near to the beginning of a page.
const MOST_BYTES: u64 = 256 * 1024;

/// Of the page in this file; nothing where it is a file of another kind.
pub(super) fn read(path: &Path) -> io::Result<Option<About>> {
    let mut head = Vec::new();
    std::fs::File::open(path)?.take(MOST_BYTES).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    let told = head.split_once(BEGIN).and_then(|(_, behind)| behind.split_once(END));
    Ok(told
        .and_then(|(text, _)| serde_json::from_str(text).ok())
        .filter(|about: &About| about.format == FORMAT))
}
