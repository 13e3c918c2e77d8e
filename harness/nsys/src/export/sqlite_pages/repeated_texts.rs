//! The texts of neighbouring rows: payloads and names repeat, so that each distinct text is copied and checked once, and
//! each row refers to it by number.

use polars::prelude::*;

pub(super) struct RepeatedTexts {
    distinct: StringChunkedBuilder,
    /// Of each row, which of the distinct ones.
    of_row: Vec<Option<IdxSize>>,
    count: IdxSize,
    /// Of those that are compared with; none where texts hardly come again.
    known: Option<PlHashMap<Box<[u8]>, IdxSize>>,
}

/// How many texts are compared before it is decided whether they repeat.
const FEW: usize = 512;

impl RepeatedTexts {
    pub(super) fn new(rows: usize) -> RepeatedTexts {
        RepeatedTexts {
            distinct: StringChunkedBuilder::new(PlSmallStr::EMPTY, 0),
            of_row: Vec::with_capacity(rows),
            count: 0,
            known: Some(PlHashMap::default()),
        }
    }

    pub(super) fn push_none(&mut self) {
        self.of_row.push(None);
    }

    /// What is no UTF-8 is a text as far as it can be.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if let Some(number) = self.known.as_ref().and_then(|known| known.get(bytes)) {
            return self.of_row.push(Some(*number));
        }
        let number = self.count;
        self.distinct.append_value(String::from_utf8_lossy(bytes));
        (self.count, self.known) =
            (number + 1, self.known.take().filter(|known| self.comes_again(known.len())));
        if let Some(known) = &mut self.known {
            known.insert(bytes.into(), number);
        }
        self.of_row.push(Some(number));
    }

    /// Whether every other text was there before.
    fn comes_again(&self, known: usize) -> bool {
        known < FEW || known * 2 < self.of_row.len()
    }

    /// One text for each row, of which equal ones share their bytes.
    pub(super) fn finish(self) -> PolarsResult<StringChunked> {
        let rows = self.of_row.len();
        match self.count as usize {
            0 => Ok(StringChunked::full_null(PlSmallStr::EMPTY, rows)),
            count if count == rows => Ok(self.distinct.finish()),
            _ => self.distinct.finish().take(&self.of_row.into_iter().collect::<IdxCa>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rows: &[Option<&[u8]>]) -> Vec<Option<String>> {
        let mut column = RepeatedTexts::new(rows.len());
        for row in rows {
            match row {
                Some(bytes) => column.push(bytes),
                None => column.push_none(),
            }
        }
        column.finish().expect("texts").iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn each_row_has_its_text_whether_it_comes_again_or_not() {
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(texts(&[]), []);
        assert_eq!(texts(&[None, None]), [None, None]);
        let long = "a text that does not fit beside its length".as_bytes();
        let rows = [Some(long), None, Some(b"".as_slice()), Some(b"\xff"), Some(long), Some(b"\xff")];
        let long = own("a text that does not fit beside its length");
        assert_eq!(texts(&rows), [long.clone(), None, own(""), own("\u{fffd}"), long, own("\u{fffd}")]);
    }

    #[test]
    fn many_texts_are_kept_that_come_once_first_and_then_again() {
        let all: Vec<String> = (0..5000).chain(0..5000).map(|n| format!("text number {n}")).collect();
        let rows: Vec<Option<&[u8]>> = all.iter().map(|text| Some(text.as_bytes())).collect();
        let read = texts(&rows);
        assert!(read.iter().zip(&all).all(|(read, text)| read.as_deref() == Some(text)));
        assert_eq!(read.len(), all.len());
    }
}
