//! The page tree of a table: which pages hold its rows, in order.

use super::file::{PageFile, VisitedPages};
use super::header;
use super::record::{big_endian, varint};

/// A page whose cells are rows.
pub(super) const LEAF: u8 = 0x0d;
/// A page whose cells lead to other pages.
pub(super) const INNER: u8 = 0x05;
/// The engine gives up at this depth too: a tree of sound pages is far lower.
const DEEPEST: usize = 20;

/// A page, and the number up to which its rows go where the page above it says so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Branch {
    pub page: u32,
    pub upto: Option<i64>,
}

/// The leaves of a tree from its root, from left to right. Levels are walked one after the other, so that inner
/// pages alone are read: that the rest are leaves is seen when they are read for their rows.
pub(super) fn leaves(file: &PageFile, root: u32, visited: &VisitedPages) -> Result<Vec<Branch>, String> {
    visited.mark(root)?;
    let mut level = vec![Branch { page: root, upto: None }];
    let mut buffer = Vec::new();
    for _ in 0..DEEPEST {
        let Some(first) = level.first() else { break };
        let page = file.run(first.page, 1, &mut buffer)?;
        if page.get(start(first.page)) != Some(&INNER) {
            return Ok(level);
        }
        let mut below = Vec::new();
        for branch in level {
            let page = file.run(branch.page, 1, &mut buffer)?;
            children(page, branch, |child| {
                visited.mark(child.page)?;
                below.push(child);
                Ok(())
            })?;
        }
        level = below;
    }
    Err(format!("page tree is deeper than {DEEPEST} levels"))
}

/// How many rows each leaf has, where they are numbered without a gap, as they are in a table that was only written to;
/// `None` where they cannot be. Only reading the leaves shows whether they are.
pub(super) fn expected(file: &PageFile, leaves: &[Branch]) -> Option<Vec<usize>> {
    let (last, rest) = leaves.split_last()?;
    let mut counts = Vec::with_capacity(leaves.len());
    let mut before = 0;
    for branch in rest {
        let count = usize::try_from(branch.upto?.checked_sub(before)?).ok()?;
        counts.push(Some(count).filter(|count| *count <= most_cells(file))?);
        before = branch.upto?;
    }
    counts.push(count(file, last.page).ok()?);
    Some(counts)
}

/// How many cells a page says that it has.
pub(super) fn count(file: &PageFile, page: u32) -> Result<usize, String> {
    let count = file.two_bytes(page, start(page) + 3)?;
    match usize::from(count) {
        count if count <= most_cells(file) => Ok(count),
        count => Err(format!("page {page} has more cells than fit: {count}")),
    }
}

/// No cell takes up less than four bytes, and its pointer two.
fn most_cells(file: &PageFile) -> usize {
    file.page_size / 6
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

fn children(
    page: &[u8],
    branch: Branch,
    mut each: impl FnMut(Branch) -> Result<(), String>,
) -> Result<(), String> {
    let (number, start) = (branch.page, start(branch.page));
    if let Some(kind) = page.get(start).filter(|kind| **kind != INNER) {
        return Err(format!("page {number} is not an inner page: type {kind}"));
    }
    for pointer in pointers(page, number, 12)? {
        let at = usize::from(u16::from_be_bytes(*pointer));
        let cell = page.get(at..).unwrap_or_default().split_at_checked(4);
        let upto = cell.and_then(|(_, upto)| varint(upto));
        let (child, (upto, _)) = cell
            .zip(upto)
            .map(|((child, _), upto)| (child, upto))
            .ok_or_else(|| format!("page {number} has a cell outside itself, at byte {at}"))?;
        each(Branch { page: big_endian(child), upto: Some(upto as i64) })?;
    }
    let last = page.get(start + 8..start + 12).unwrap_or_default();
    each(Branch { page: big_endian(last), upto: branch.upto })
}
