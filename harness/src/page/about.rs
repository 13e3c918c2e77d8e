//! The description of a page in its head, from which an index is made.

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
    /// The titles of its charts.
    #[serde(alias = "pictures")]
    pub charts: Vec<String>,
    pub tables: usize,
}

/// The version of this text.
pub(super) const FORMAT: u32 = 1;
/// The begin and end of the element that holds it.
pub(super) const BEGIN: &str = "<script type=\"application/json\" id=\"about\">";
pub(super) const END: &str = "</script>";
/// It ends within so many bytes of the beginning of a page.
const MOST_BYTES: u64 = 256 * 1024;

/// The description of the page in this file; `None` where the file is no page.
pub(super) fn read(path: &Path) -> io::Result<Option<About>> {
    let mut head = Vec::new();
    std::fs::File::open(path)?.take(MOST_BYTES).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    let element = head.split_once(BEGIN).and_then(|(_, behind)| behind.split_once(END));
    Ok(element
        .and_then(|(text, _)| serde_json::from_str(text).ok())
        .filter(|about: &About| about.format == FORMAT))
}
