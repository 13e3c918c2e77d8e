//! Reads the rows of some pages: each record, gathered from its overflow pages where it is long, and its wanted
//! fields.

use super::columns::{Filled, Share};
use super::file::{PageFile, VisitedPages, Window};
use super::record::{Cell, Layout, Spot, big_endian, varint, varint_length};
use super::scan::{From, Wanted};
use super::shapes::{Shaped, Shapes};
use super::tree;
use crate::tables::ColumnType;

pub(super) struct Reader<'a, 'w> {
    file: &'a PageFile,
    visited: &'a VisitedPages,
    /// How many rows there should be.
    expected: usize,
    /// How many were read.
    rows: usize,
    layout: Layout,
    /// Where the wanted fields of the last row lie.
    spots: Vec<Spot>,
    /// The records of the last page, where they were as usual.
    shaped: Vec<Shaped>,
    /// `None` where pages cannot be read by columns.
    shapes: Option<Shapes>,
    columns: Vec<Filling<'w>>,
    /// Columns of the row's own number.
    numbers: Vec<Filling<'w>>,
    flow: Flow,
}

/// A column on its way.
struct Filling<'w> {
    /// Which of the wanted ones it is.
    at: usize,
    name: &'static str,
    real: bool,
    share: Share<'w>,
}

/// What was wrong, and with which of the reader's rows, from 0, where it was with one.
#[derive(Debug)]
pub(super) enum ReadError {
    Row(usize, String),
    File(String),
    /// There are not as many rows as were expected.
    Miscounted,
}

/// One cell of a leaf.
struct RowCell<'p> {
    /// The number of the row, as it is written.
    number: &'p [u8],
    /// How long the record is, wherever it lies.
    length: usize,
    /// The part of it on this page, and what comes behind it there.
    body: &'p [u8],
    /// How much of it is on this page.
    local: usize,
    /// How much of the page the cell takes up.
    taken: usize,
}

impl<'a, 'w> Reader<'a, 'w> {
    /// One share for each of the wanted columns.
    pub(super) fn new(
        file: &'a PageFile,
        visited: &'a VisitedPages,
        wanted: &[Wanted],
        shares: Vec<Share<'w>>,
        expected: usize,
    ) -> Reader<'a, 'w> {
        let mut columns = Vec::new();
        let mut numbers = Vec::new();
        for (at, (wanted, share)) in wanted.iter().zip(shares).enumerate() {
            match wanted.from {
                From::RowNumber => numbers.push(Filling { at, name: wanted.name, real: false, share }),
                From::Field { at: field, real } => {
                    columns.push((field, Filling { at, name: wanted.name, real, share }));
                }
            }
        }
        columns.sort_by_key(|(field, _)| *field);
        let (fields, columns) = columns.into_iter().unzip();
        let (layout, flow) = (Layout::new(fields), Flow::default());
        // Whole numbers that stand for reals, and are not asked for as such, are read one by one.
        let plain = wanted.iter().all(|wanted| match wanted.from {
            From::RowNumber => false,
            From::Field { real, .. } => !real || wanted.kind == ColumnType::Real,
        });
        let shapes = if plain { Shapes::new(&layout) } else { None };
        Reader {
            file,
            visited,
            expected,
            rows: 0,
            layout,
            spots: Vec::new(),
            shaped: Vec::new(),
            shapes,
            columns,
            numbers,
            flow,
        }
    }

    /// So that of several errors the one in the first row is reported.
    pub(super) fn row_by_row(mut self) -> Self {
        self.shapes = None;
        self
    }

    /// The shares that were filled, in the order of the wanted columns, when as many rows were read as there should be.
    pub(super) fn finish(self) -> Result<Vec<Filled>, ReadError> {
        if self.rows != self.expected {
            return Err(ReadError::Miscounted);
        }
        let mut all: Vec<Filling> = self.columns.into_iter().chain(self.numbers).collect();
        all.sort_by_key(|column| column.at);
        Ok(all.into_iter().map(|column| column.share.filled(self.rows)).collect())
    }

    pub(super) fn page(&mut self, page: &[u8], number: u32) -> Result<(), ReadError> {
        match page.get(tree::start(number)) {
            Some(&tree::LEAF) => {}
            Some(&tree::INNER) => {
                return Err(ReadError::File(format!("page {number} is at the wrong depth of the tree")));
            }
            kind => {
                let kind = kind.copied().unwrap_or_default();
                return Err(ReadError::File(format!("page {number} is not a table page: type {kind}")));
            }
        }
        let pointers = tree::pointers(page, number, 8).map_err(ReadError::File)?;
        if self.rows + pointers.len() > self.expected {
            return Err(ReadError::Miscounted);
        }
        match self.usual(page, pointers) {
            Some(()) => self.by_columns(page),
            None => self.by_rows(page, number, pointers),
        }
    }

    /// Where the records lie on a page as pages mostly are, and of which shape each is: all lie on it as a whole, under a
    /// header that is no longer than most. `None` for any other page.
    fn usual(&mut self, page: &[u8], pointers: &[[u8; 2]]) -> Option<()> {
        let shapes = self.shapes.as_mut()?;
        shapes.begin_page();
        self.shaped.clear();
        self.shaped.reserve(pointers.len());
        let mut taken = 8 + 2 * pointers.len();
        for pointer in pointers {
            let at = usize::from(u16::from_be_bytes(*pointer));
            let cell = page.get(at..)?;
            let (length, first) = varint(cell)?;
            let head = first + varint_length(cell.get(first..)?)?;
            // What flows over is longer than this, and what is shorter takes up more than it has.
            let length =
                usize::try_from(length).ok().filter(|length| (2..=page.len() - 35).contains(length))?;
            let behind = cell.get(head..).filter(|behind| behind.len() >= length)?;
            let (shaped, needed) = shapes.find(&self.layout, behind, (at + head) as u32)?;
            if needed > length {
                return None;
            }
            taken += head + length;
            self.shaped.push(shaped);
        }
        (taken <= page.len()).then_some(())
    }

    fn by_columns(&mut self, page: &[u8]) -> Result<(), ReadError> {
        let spots = self.shapes.as_ref().map_or(&[][..], |shapes| &shapes.spots);
        for (field, column) in self.columns.iter_mut().enumerate() {
            let spots = spots.get(field..).unwrap_or_default();
            let put = column.share.put_all(self.rows, page, &self.shaped, spots);
            put.map_err(|(row, why)| column.trouble(row, &why))?;
        }
        self.rows += self.shaped.len();
        Ok(())
    }

    fn by_rows(&mut self, page: &[u8], number: u32, pointers: &[[u8; 2]]) -> Result<(), ReadError> {
        let mut taken = 8 + 2 * pointers.len();
        for pointer in pointers {
            let at = usize::from(u16::from_be_bytes(*pointer));
            let cell = page.get(at..).unwrap_or_default();
            let cell = row_cell(cell, page.len(), self.file.bytes());
            let cell = cell.map_err(|why| ReadError::Row(self.rows, why))?;
            // Cells that lie upon each other would make more rows of a page than were ever written to it.
            taken += cell.taken;
            if taken > page.len() {
                return Err(ReadError::File(format!("page {number} has overlapping cells")));
            }
            self.row(&cell)?;
            self.rows += 1;
        }
        Ok(())
    }

    fn row(&mut self, cell: &RowCell<'_>) -> Result<(), ReadError> {
        if cell.local == cell.length {
            self.find(cell.body, cell.length)?;
            return self.push(cell.body, cell.number);
        }
        // A record that does not lie on its page as a whole: as much of it as is needed is gathered first.
        let mut flow = std::mem::take(&mut self.flow);
        let pushed = self.flowing(&mut flow, cell);
        self.flow = flow;
        pushed
    }

    fn flowing(&mut self, flow: &mut Flow, cell: &RowCell<'_>) -> Result<(), ReadError> {
        flow.begin(cell).map_err(|why| self.bad_row(&why))?;
        let header = varint(cell.body).map_or(0, |(length, _)| length);
        let header = usize::try_from(header).ok().filter(|header| *header <= cell.length);
        let header = header.ok_or_else(|| self.bad_row(ENDS_EARLY))?;
        flow.reach(header, cell.length, self.file, self.visited).map_err(ReadError::File)?;
        let needed = self.find(&flow.gathered, cell.length)?;
        flow.reach(needed, cell.length, self.file, self.visited).map_err(ReadError::File)?;
        self.push(&flow.gathered, cell.number)
    }

    /// Finds where the values of one row lie, and how much of its record they and the header take up.
    fn find(&mut self, record: &[u8], length: usize) -> Result<usize, ReadError> {
        self.spots.clear();
        match self.layout.find(record, &mut self.spots) {
            Ok(needed) if needed <= length => Ok(needed),
            Ok(_) => Err(self.bad_row(ENDS_EARLY)),
            Err(why) => Err(self.bad_row(why)),
        }
    }

    fn push(&mut self, record: &[u8], number: &[u8]) -> Result<(), ReadError> {
        for (column, spot) in self.columns.iter_mut().zip(&self.spots) {
            let cell = spot.cell(record);
            let ends_early = || ReadError::Row(self.rows, format!(": {ENDS_EARLY}"));
            column.put(self.rows, cell.ok_or_else(ends_early)?)?;
        }
        for column in &mut self.numbers {
            let number = varint(number).map_or(0, |(number, _)| number as i64);
            column.put(self.rows, Cell::Integer(number))?;
        }
        Ok(())
    }

    fn bad_row(&self, why: &str) -> ReadError {
        ReadError::Row(self.rows, format!(": {why}"))
    }
}

impl Filling<'_> {
    fn put(&mut self, row: usize, cell: Cell<'_>) -> Result<(), ReadError> {
        let cell = match cell {
            Cell::Integer(number) if self.real => Cell::Real(number as f64),
            other => other,
        };
        self.share.put(row, cell).map_err(|why| self.trouble(row, &why))
    }

    fn trouble(&self, row: usize, why: &str) -> ReadError {
        ReadError::Row(row, format!(", column `{}`: {why}", self.name))
    }
}

const ENDS_EARLY: &str = "record ends before its values";

/// `cell` is the page from the cell's begin on.
fn row_cell(cell: &[u8], page_size: usize, file_bytes: u64) -> Result<RowCell<'_>, String> {
    let outside = || ": cell lies outside its page".to_owned();
    let (length, first) = varint(cell).ok_or_else(outside)?;
    let number = cell.get(first..).unwrap_or_default();
    let second = varint_length(number).ok_or_else(outside)?;
    if length > file_bytes {
        return Err(format!(": record is longer than the file: {length} bytes"));
    }
    let head = first + second;
    let length = length as usize;
    let local = local(length, page_size);
    let link = if local < length { 4 } else { 0 };
    let body = cell.get(head..).filter(|body| body.len() >= local + link).ok_or_else(outside)?;
    // The engine gives no cell less than four bytes.
    let taken = (head + local + link).max(4);
    Ok(RowCell { number, length, body, local, taken })
}

/// How much of a record of this length lies on its own page; the rest flows over to others.
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

    /// Gathers until this much of a record of that length is there. Pages are marked as visited before they are read, so
    /// that what is gathered is never more than the file has.
    fn reach(
        &mut self,
        end: usize,
        length: usize,
        file: &PageFile,
        visited: &VisitedPages,
    ) -> Result<(), String> {
        let page_bytes = file.page_size - 4;
        while self.gathered.len() < end {
            visited.mark(self.next)?;
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
