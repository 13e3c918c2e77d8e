//! Caches the headers of records: most rows have one of a few, so that the places of the wanted fields are computed
//! once per header and not per row.

use super::record::{Layout, Spot};

/// Headers are distinguished by this many bytes.
const BYTES: usize = 32;
const WORDS: usize = BYTES / 8;
const SLOTS: usize = 256;
/// More shapes than this are forgotten when the next page begins.
const MANY: usize = 1024;

pub(super) struct Shapes {
    /// The bytes of a record that belong to the header as far as it matters, where these are so many.
    masks: [[u64; WORDS]; BYTES + 1],
    known: Vec<Known>,
    /// The spots of all shapes, one shape after the other.
    pub spots: Vec<Spot>,
    /// Where the shape of a header may be found among those that are known.
    slots: [u32; SLOTS],
}

struct Known {
    key: [u64; WORDS],
    needed: usize,
}

/// One record of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shaped {
    /// Where it begins on its page.
    pub begin: u32,
    /// Where the spots of its shape begin.
    pub spots: u32,
}

impl Shapes {
    /// `None` where the wanted fields lie too far behind.
    pub(super) fn new(layout: &Layout) -> Option<Shapes> {
        // The length of the header stands before the types.
        let used = layout.types() + 1;
        let mut lengths = 0..;
        let masks = [(); BYTES + 1].map(|()| lengths.next().map_or([0; WORDS], mask));
        (used <= BYTES).then(|| Shapes { masks, known: Vec::new(), spots: Vec::new(), slots: [0; SLOTS] })
    }

    /// What was found for the pages before is not asked for any more.
    pub(super) fn begin_page(&mut self) {
        if self.known.len() > MANY {
            self.known.clear();
            self.spots.clear();
        }
    }

    /// The shape of a record, and how much of it the header and the wanted fields take up. `bytes` go on behind the
    /// record to the end of its page. `None` for one whose header is longer than headers are, or not sound.
    #[inline(always)]
    pub(super) fn find(&mut self, layout: &Layout, bytes: &[u8], begin: u32) -> Option<(Shaped, usize)> {
        let first = match bytes.first_chunk::<BYTES>() {
            Some(first) => *first,
            None => padded(bytes),
        };
        let used = layout.types() + 1;
        let mut key = masked(&first, self.masks.get(used)?);
        // Types of long texts and blobs take more than one byte.
        if key.iter().any(|word| word & HIGHEST != 0) {
            key = masked(&first, self.masks.get(length(&first, used)?)?);
        }
        let mix = |mixed: u64, word: &u64| (mixed.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = key.iter().fold(0, mix);
        let slot = (mixed >> 56) as usize;
        let at = self.slots[slot % SLOTS];
        if let Some(known) = self.known.get(at as usize)
            && known.key == key
        {
            let spots = at * layout.fields() as u32;
            return Some((Shaped { begin, spots }, known.needed));
        }
        self.another(layout, bytes, key, slot).map(|(spots, needed)| (Shaped { begin, spots }, needed))
    }

    #[inline(never)]
    fn another(
        &mut self,
        layout: &Layout,
        bytes: &[u8],
        key: [u64; WORDS],
        slot: usize,
    ) -> Option<(u32, usize)> {
        // All of the types belong to the header, whose length is one of them.
        let length = length(&padded(bytes), layout.types() + 1)?;
        let header = bytes.first().filter(|header| **header < 0x80).map(|header| usize::from(*header))?;
        if length > header.min(bytes.len()) {
            return None;
        }
        let at = self.spots.len();
        let Ok(needed) = layout.find(bytes, &mut self.spots) else {
            self.spots.truncate(at);
            return None;
        };
        self.slots[slot % SLOTS] = self.known.len() as u32;
        self.known.push(Known { key, needed });
        Some((at as u32, needed))
    }
}

/// The highest bit of each byte: all bytes of a number but the last have it.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// The first so many bytes.
fn mask(used: usize) -> [u64; WORDS] {
    let mut at = 0..BYTES;
    [(); WORDS].map(|()| {
        let bytes = [(); 8].map(|()| if at.next().is_some_and(|at| at < used) { 0xff } else { 0 });
        u64::from_le_bytes(bytes)
    })
}

#[inline(always)]
fn masked(first: &[u8; BYTES], mask: &[u64; WORDS]) -> [u64; WORDS] {
    let mut words = *mask;
    for (word, bytes) in words.iter_mut().zip(first.as_chunks::<8>().0) {
        *word &= u64::from_le_bytes(*bytes);
    }
    words
}

/// How many bytes so many numbers take; `None` where that is more than headers are distinguished by.
#[inline(always)]
fn length(first: &[u8; BYTES], numbers: usize) -> Option<usize> {
    // Of each byte whether a number ends with it.
    let words = first.as_chunks::<8>().0.iter().rev();
    let ends = words.fold(0u64, |ends, bytes| {
        let highest = (!u64::from_le_bytes(*bytes) & HIGHEST) >> 7;
        ends << 8 | highest.wrapping_mul(0x0102_0408_1020_4080) >> 56
    });
    let mut length = numbers;
    while length <= BYTES {
        let ended = (ends & ((1 << length) - 1)).count_ones() as usize;
        if ended == numbers {
            return Some(length);
        }
        length += numbers - ended;
    }
    None
}

#[inline(never)]
fn padded(bytes: &[u8]) -> [u8; BYTES] {
    let mut all = [0; BYTES];
    all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_their_bytes_with_the_highest_bit_and_one_more() {
        let of = |bytes: &[u8], numbers| length(&padded(bytes), numbers);
        assert_eq!(of(&[1, 2, 3], 3), Some(3));
        assert_eq!(of(&[1, 0x81, 2, 3], 3), Some(4));
        assert_eq!(of(&[0x81, 0x82, 2, 0xff, 0x80, 0x80, 4, 0x80], 2), Some(7));
        assert_eq!(of(&[0x80; BYTES], 1), None);
        let mut last = [0x80; BYTES];
        last[BYTES - 1] = 0;
        assert_eq!((of(&last, 1), of(&last, 2)), (Some(BYTES), None));
        last[0] = 0;
        assert_eq!((of(&last, 1), of(&last, 2), of(&[0; BYTES], BYTES)), (Some(1), Some(BYTES), Some(BYTES)));
    }

    #[test]
    fn records_with_long_texts_have_shapes_too_and_each_length_its_own() {
        let layout = Layout::new(vec![0, 2]);
        let mut shapes = Shapes::new(&layout).expect("few fields");
        // A number, a text of so many bytes, a number behind it.
        let record = |text: usize| {
            let serial = 13 + 2 * text;
            let mut record = vec![0, 1];
            if serial >= 0x80 {
                record.push(0x80 | (serial >> 7) as u8);
            }
            record.extend([(serial & 0x7f) as u8, 1]);
            record[0] = record.len() as u8;
            record.push(7);
            record.extend(vec![b'x'; text]);
            record.push(9);
            record
        };
        for text in [3, 57, 58, 100, 101, 100, 57, 3] {
            let record = record(text);
            let (shaped, needed) = shapes.find(&layout, &record, 0).expect("a shape");
            assert_eq!(needed, record.len(), "{text}");
            let spots = &shapes.spots[shaped.spots as usize..];
            let integers = [spots[0].integer(&padded(&record), 0), spots[1].cell(&record).map(|_| 0)];
            assert_eq!(integers, [Some(7), Some(0)], "{text}");
        }
        assert_eq!(shapes.known.len(), 5);
        // The header says that it ends within a type.
        let mut short = record(100);
        short[0] = 4;
        assert!(shapes.find(&layout, &short, 0).is_none());
    }
}
