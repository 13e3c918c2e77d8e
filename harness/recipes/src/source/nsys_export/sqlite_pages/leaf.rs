//! The rows of some pages: each cell's record, gathered from the pages it flows over to where it is long, and of it the
//! fields that are asked for.

use super::columns::Values;
use super::file::{PageFile, Seen, Window};
use super::record::{Cell, Layout, big_endian, varint};
use super::scan::{From, Wanted};
use super::tree;

pub(super) struct Reader<'a> {
    file: &'a PageFile,
    seen: &'a Seen,
    wanted: &'a [Wanted],
    /// The places of the wanted fields in a record, each once, ascending.
    fields: Vec<usize>,
    layout: Layout,
    flow: Flow,
    pub rows: usize,
    pub values: Vec<Values>,
}

/// What was wrong, and with which of the reader's rows, from 0, where it was with one.
#[derive(Debug)]
pub(super) enum Trouble {
    Row(usize, String),
    File(String),
}

/// One cell of a leaf.
struct RowCell<'p> {
    number: i64,
    /// How long the record is, wherever it lies.
    length: usize,
    /// The part of it on this page, and what comes behind it there.
    body: &'p [u8],
    /// How much of it is on this page.
    local: usize,
    /// How much of the page the cell takes up.
    taken: usize,
}

impl<'a> Reader<'a> {
    pub fn new(file: &'a PageFile, seen: &'a Seen, wanted: &'a [Wanted]) -> Reader<'a> {
        let places = wanted.iter().filter_map(|wanted| match wanted.from {
            From::Field { at, .. } => Some(at),
            _ => None,
        });
        let mut fields: Vec<usize> = places.collect();
        fields.sort_unstable();
        fields.dedup();
        let values = wanted.iter().map(|wanted| Values::of(wanted.kind)).collect();
        let (layout, flow) = (Layout::default(), Flow::default());
        Reader { file, seen, wanted, fields, layout, flow, rows: 0, values }
    }

    /// Makes room for this many more rows.
    pub fn reserve(&mut self, rows: usize) {
        self.values.iter_mut().for_each(|values| values.reserve(rows));
    }

    pub fn page(&mut self, page: &[u8], number: u32) -> Result<(), Trouble> {
        match page.get(tree::start(number)) {
            Some(&tree::LEAF) => {}
            Some(&tree::INNER) => {
                return Err(Trouble::File(format!("page {number} does not lie as deep as its neighbours")));
            }
            kind => {
                let kind = kind.copied().unwrap_or_default();
                return Err(Trouble::File(format!("page {number} is none of a table: {kind}")));
            }
        }
        let pointers = tree::pointers(page, number, 8).map_err(Trouble::File)?;
        let mut taken = 8 + 2 * pointers.len();
        self.reserve(pointers.len());
        for pointer in pointers {
            let at = usize::from(u16::from_be_bytes(*pointer));
            let cell = page.get(at..).unwrap_or_default();
            let cell = row_cell(cell, page.len(), self.file.bytes());
            let cell = cell.map_err(|why| Trouble::Row(self.rows, why))?;
            // Cells that lie upon each other would make more rows of a page than were ever written to it.
            taken += cell.taken;
            if taken > page.len() {
                return Err(Trouble::File(format!("page {number} has cells that overlap")));
            }
            self.row(&cell)?;
            self.rows += 1;
        }
        Ok(())
    }

    #[inline(always)]
    fn row(&mut self, cell: &RowCell<'_>) -> Result<(), Trouble> {
        let at = self.rows;
        let bad = |why: &str| Trouble::Row(at, format!(": {why}"));
        if cell.local == cell.length {
            self.layout.find(cell.body, &self.fields).map_err(bad)?;
            if self.layout.needed > cell.length {
                return Err(bad(ENDS_EARLY));
            }
            return self.push(cell.body, cell.number);
        }
        let mut flow = std::mem::take(&mut self.flow);
        let pushed = self.flowing(&mut flow, cell);
        self.flow = flow;
        pushed
    }

    /// A record that does not lie on its page as a whole: as much of it as is needed is gathered first.
    #[inline(never)]
    fn flowing(&mut self, flow: &mut Flow, cell: &RowCell<'_>) -> Result<(), Trouble> {
        let at = self.rows;
        let bad = |why: &str| Trouble::Row(at, format!(": {why}"));
        flow.begin(cell).map_err(|why| bad(&why))?;
        let header = varint(cell.body).map_or(0, |(length, _)| length);
        let header = usize::try_from(header).ok().filter(|header| *header <= cell.length);
        let header = header.ok_or_else(|| bad(ENDS_EARLY))?;
        flow.reach(header, cell.length, self.file, self.seen).map_err(Trouble::File)?;
        self.layout.find(&flow.gathered, &self.fields).map_err(bad)?;
        if self.layout.needed > cell.length {
            return Err(bad(ENDS_EARLY));
        }
        flow.reach(self.layout.needed, cell.length, self.file, self.seen).map_err(Trouble::File)?;
        self.push(&flow.gathered, cell.number)
    }

    #[inline(always)]
    fn push(&mut self, record: &[u8], number: i64) -> Result<(), Trouble> {
        for (at, (values, wanted)) in self.values.iter_mut().zip(self.wanted).enumerate() {
            let cell = match wanted.from {
                From::Nowhere => continue,
                From::RowNumber => Cell::Integer(number),
                From::Field { at, real } => {
                    let spot = self.fields.iter().position(|field| *field == at);
                    let spot = spot.and_then(|spot| self.layout.spots.get(spot));
                    let Some(spot) = spot else { continue };
                    if let (Values::Integers(all, _), false) = (&mut *values, real)
                        && let Some(number) = spot.integer(record)
                    {
                        all.push(number);
                        continue;
                    }
                    match spot.cell(record) {
                        Some(Cell::Integer(number)) if real => Cell::Real(number as f64),
                        Some(cell) => cell,
                        None => return Err(Trouble::Row(self.rows, format!(": {ENDS_EARLY}"))),
                    }
                }
            };
            if let Err(why) = values.push(cell) {
                let column = self.wanted.get(at).map_or("", |wanted| wanted.name);
                return Err(Trouble::Row(self.rows, format!(", column `{column}`: {why}")));
            }
        }
        Ok(())
    }
}

const ENDS_EARLY: &str = "its record ends before its values";

/// `cell` is the page from the cell's begin on.
#[inline(always)]
fn row_cell(cell: &[u8], page_size: usize, file_bytes: u64) -> Result<RowCell<'_>, String> {
    let outside = || ": its cell lies outside its page".to_owned();
    let (length, first) = varint(cell).ok_or_else(outside)?;
    let (number, second) = varint(cell.get(first..).unwrap_or_default()).ok_or_else(outside)?;
    if length > file_bytes {
        return Err(format!(": its record is longer than the file: {length} bytes"));
    }
    let head = first + second;
    let length = length as usize;
    let local = local(length, page_size);
    let link = if local < length { 4 } else { 0 };
    let body = cell.get(head..).filter(|body| body.len() >= local + link).ok_or_else(outside)?;
    // The engine gives no cell less than four bytes.
    let taken = (head + local + link).max(4);
    Ok(RowCell { number: number as i64, length, body, local, taken })
}

/// How much of a record of this length lies on its own page; the rest flows over to others.
#[inline(always)]
fn local(length: usize, page_size: usize) -> usize {
    let most = page_size - 35;
    if length <= most {
        return length;
    }
    let least = (page_size - 12) * 32 / 255 - 23;
    let fitting = least + (length - least) % (page_size - 4);
    if fitting <= most { fitting } else { least }
}

/// A record that flows over its page, as far as it was gathered.
#[derive(Default)]
struct Flow {
    gathered: Vec<u8>,
    next: u32,
    window: Window,
}

impl Flow {
    fn begin(&mut self, cell: &RowCell<'_>) -> Result<(), String> {
        let (here, behind) = cell.body.split_at_checked(cell.local).unwrap_or_default();
        let link = behind.get(..4).ok_or_else(|| ENDS_EARLY.to_owned())?;
        self.gathered.clear();
        self.gathered.extend_from_slice(here);
        self.next = big_endian(link);
        Ok(())
    }

    /// Gathers until this much of a record of that length is there. Pages are counted as seen before they are read, so
    /// that what is gathered is never more than the file has.
    fn reach(&mut self, end: usize, length: usize, file: &PageFile, seen: &Seen) -> Result<(), String> {
        let page_bytes = file.page_size - 4;
        while self.gathered.len() < end {
            seen.mark(self.next)?;
            let more = (end - self.gathered.len()).div_ceil(page_bytes) - 1;
            let page = self.window.page(file, self.next, more)?;
            let (link, bytes) = page.split_at_checked(4).unwrap_or_default();
            let here = bytes.len().min(length - self.gathered.len());
            self.gathered.extend_from_slice(bytes.get(..here).unwrap_or_default());
            self.next = big_endian(link);
        }
        Ok(())
    }
}
