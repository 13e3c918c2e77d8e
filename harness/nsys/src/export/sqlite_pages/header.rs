//! The first hundred bytes of an SQLite file: page size, page count, and whether its format is one that is read here.

pub(super) const LENGTH: usize = 100;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Header {
    Plain {
        page_size: usize,
        pages: u32,
    },
    /// Why it is left to the whole engine.
    NotPlain(String),
}

/// `length` is that of the whole file.
pub(super) fn read(head: &[u8; LENGTH], length: u64) -> Result<Header, String> {
    let word = |at: usize| head.get(at..at + 4).map_or(0, super::record::big_endian);
    let page_size = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 65536,
        size if size >= 512 && size.is_power_of_two() => usize::from(size),
        size => return Err(format!("invalid page size: {size}")),
    };
    let not_plain = |why: &str| Ok(Header::NotPlain(why.to_owned()));
    if head[18] != 1 || head[19] != 1 {
        return not_plain("it has a write-ahead log or a newer format");
    }
    if head[20] != 0 {
        return not_plain("its pages reserve bytes for an extension");
    }
    if head[21..24] != [64, 32, 32] {
        return not_plain("its payload fractions are not the standard ones");
    }
    if word(44) > 4 {
        return not_plain("its schema has a newer format");
    }
    // Zero is what a file without a table has.
    if word(56) > 1 {
        return not_plain("its text encoding is not UTF-8");
    }
    let there = length / page_size as u64;
    // The count is only kept by writers that also note here which change they made last.
    let counted = if word(24) == word(92) { word(28) } else { 0 };
    if counted > 0 && there < u64::from(counted) {
        return Err(format!("truncated: {there} of {counted} pages"));
    }
    let pages = if counted > 0 { counted } else { u32::try_from(there).unwrap_or(u32::MAX) };
    if pages == 0 {
        return Err(format!("truncated: {length} of {page_size} bytes of the first page"));
    }
    Ok(Header::Plain { page_size, pages })
}
