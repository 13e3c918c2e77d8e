//! The tree of pages under a table: which pages hold its rows, in their order. What the rows are is read elsewhere.

use super::file::{PageFile, Seen};
use super::header;
use super::record::big_endian;

/// A page whose cells are rows.
pub(super) const LEAF: u8 = 0x0d;
/// A page whose cells lead to other pages.
pub(super) const INNER: u8 = 0x05;
/// The engine gives up at this depth too: a tree of sound pages is far lower.
const DEEPEST: usize = 20;

/// The leaves of a tree from its root, from left to right. Levels are gone through one after the other, so that inner
/// pages alone are read: that the rest are leaves is seen when they are read for their rows.
pub(super) fn leaves(file: &PageFile, root: u32, seen: &Seen) -> Result<Vec<u32>, String> {
    seen.mark(root)?;
    let mut level = vec![root];
    let mut buffer = Vec::new();
    for _ in 0..DEEPEST {
        let Some(first) = level.first() else { break };
        let page = file.run(*first, 1, &mut buffer)?;
        if page.get(start(*first)) != Some(&INNER) {
            return Ok(level);
        }
        let mut below = Vec::new();
        for number in level {
            let page = file.run(number, 1, &mut buffer)?;
            children(page, number, |child| {
                seen.mark(child)?;
                below.push(child);
                Ok(())
            })?;
        }
        level = below;
    }
    Err(format!("its pages lie deeper than those of any table: {DEEPEST}"))
}

/// Where the page's own head begins: on the first page, that of the file comes before it.
pub(super) fn start(page: u32) -> usize {
    if page == 1 { header::LENGTH } else { 0 }
}

/// The pointers to a page's cells, two bytes each; `head` is how long the head of this kind of page is.
pub(super) fn pointers(page: &[u8], number: u32, head: usize) -> Result<&[[u8; 2]], String> {
    let start = start(number);
    let count = page.get(start + 3..start + 5).and_then(|bytes| bytes.try_into().ok());
    let length = 2 * usize::from(count.map_or(0, u16::from_be_bytes));
    let first = start + head;
    let pointers = page.get(first..first + length);
    let pointers =
        pointers.ok_or_else(|| format!("page {number} has more cells than fit: {}", length / 2))?;
    Ok(pointers.as_chunks().0)
}

fn children(page: &[u8], number: u32, mut each: impl FnMut(u32) -> Result<(), String>) -> Result<(), String> {
    let start = start(number);
    if let Some(kind) = page.get(start).filter(|kind| **kind != INNER) {
        return Err(format!("page {number} is not one that leads to others: {kind}"));
    }
    for pointer in pointers(page, number, 12)? {
        let at = usize::from(u16::from_be_bytes(*pointer));
        let child = page.get(at..at + 4);
        each(big_endian(child.ok_or_else(|| format!("page {number} has a cell outside itself: {at}"))?))?;
    }
    each(big_endian(page.get(start + 8..start + 12).unwrap_or_default()))
}
