//! Where each stream of a file begins and ends, and its table, found by following the lengths of the messages without
//! reading their bodies.

use crate::regular_file;
use arrow_ipc::{Field, MessageHeader, RecordBatch, Type, root_as_message};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What stands before the length of each message.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];

/// How the other form of Arrow begins: the same messages, with a table of contents behind them.
const MAGIC: &[u8; 6] = b"ARROW1";

/// The table of contents of a stream is a schema; more than this of one is no schema.
const MOST_METADATA: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stream {
    pub table: Option<String>,
    pub begin: u64,
    pub end: u64,
    /// It ends with its mark, and not with the file.
    is_ended: bool,
}

/// All streams of a file, each with whole messages.
pub(super) fn streams(path: &Path) -> Result<Vec<Stream>, String> {
    let file = regular_file::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let mut magic = [0; 6];
    let with_contents = length >= 8 && file.read_exact_at(&mut magic, 0).is_ok() && &magic == MAGIC;
    let cut = || format!("truncated or not Arrow, at byte {length}");
    if with_contents && (file.read_exact_at(&mut magic, length - 6).is_err() || &magic != MAGIC) {
        return Err(cut());
    }
    let mut at = if with_contents { behind_magic(&file) } else { 0 };
    let mut streams = Vec::new();
    while at < length {
        let stream = stream(&file, at, length)?;
        at = stream.end;
        streams.push(stream);
        if with_contents {
            // Behind its only stream the table of contents follows, which adds nothing.
            break;
        }
    }
    // Who ends one stream with its mark ends the last one with it, too.
    match streams.as_slice() {
        [_, .., last] if !last.is_ended => Err(cut()),
        _ => Ok(streams),
    }
}

/// The magic word is filled up to 8 bytes, or to as many as buffers are aligned to.
fn behind_magic(file: &File) -> u64 {
    let begins = |at: &u64| {
        let mut word = [0; 4];
        file.read_exact_at(&mut word, *at).is_ok() && word == CONTINUATION
    };
    (8..=128).step_by(8).find(begins).unwrap_or(8)
}

fn stream(file: &File, begin: u64, length: u64) -> Result<Stream, String> {
    let cut = |at: u64| format!("truncated or not Arrow, at byte {at}");
    let mut table = None;
    let mut at = begin;
    loop {
        let mut head = [0; 8];
        if at == length && at > begin {
            // A stream may end with the file.
            return Ok(Stream { table, begin, end: at, is_ended: false });
        }
        file.read_exact_at(&mut head, at).map_err(|_| cut(at))?;
        if head[..4] != CONTINUATION {
            return Err(cut(at));
        }
        let metadata = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
        if metadata == 0 {
            if at == begin {
                return Err(cut(at));
            }
            return Ok(Stream { table, begin, end: at + 8, is_ended: true });
        }
        if metadata > MOST_METADATA || at + 8 + metadata > length {
            return Err(cut(at));
        }
        let mut bytes = vec![0; metadata as usize];
        file.read_exact_at(&mut bytes, at + 8).map_err(|_| cut(at))?;
        let message = root_as_message(&bytes).map_err(|_| cut(at))?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| cut(at))?;
        let next = (at + 8 + metadata).checked_add(body).filter(|next| *next <= length);
        let is_schema = message.header_type() == MessageHeader::Schema;
        if is_schema != (at == begin) {
            return Err(format!("missing or misplaced schema at byte {at}"));
        }
        if let Some(pairs) = message.header_as_schema().and_then(|schema| schema.custom_metadata()) {
            let named = pairs.iter().find(|pair| pair.key() == Some("table_name"));
            table = named.and_then(|pair| pair.value()).map(str::to_owned);
        }
        let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
        if let Some(batch) = message.header_as_record_batch().or(dictionary) {
            if batch.compression().is_some() {
                return Err(
                    "compressed Arrow batches are not supported; export as Parquet or SQLite".to_owned()
                );
            }
            if !is_sound(&batch, body) {
                return Err(format!("record batch larger than its message, at byte {at}"));
            }
        }
        at = next.ok_or_else(|| cut(at))?;
    }
}

/// The first message of a stream, in which these columns are bytes where it calls them texts, and where the file goes on
/// behind it. Exports call bytes a text that is none, and no text is read that is not sound.
pub(super) fn schema_with_bytes(
    path: &Path,
    stream: &Stream,
    columns: &[&str],
) -> Result<(Vec<u8>, u64), String> {
    if columns.is_empty() {
        return Ok((Vec::new(), stream.begin));
    }
    let file = regular_file::open(path).map_err(|error| error.to_string())?;
    let cut = || format!("truncated or not Arrow, at byte {}", stream.begin);
    let mut head = [0; 8];
    file.read_exact_at(&mut head, stream.begin).map_err(|_| cut())?;
    let length = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    if length > MOST_METADATA {
        return Err(cut());
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, stream.begin + 8).map_err(|_| cut())?;
    let message = root_as_message(&bytes).map_err(|_| cut())?;
    let fields = message.header_as_schema().and_then(|schema| schema.fields());
    let called = fields.iter().flat_map(|fields| fields.iter());
    let named = called.filter(|field| field.name().is_some_and(|name| columns.contains(&name)));
    let places: Vec<(usize, Type)> = named
        .filter_map(|field| {
            let bytes = match field.type_type() {
                Type::Utf8 => Type::Binary,
                Type::LargeUtf8 => Type::LargeBinary,
                _ => return None,
            };
            // Both kinds of type have nothing in them: the byte that names the type is all there is.
            let within = field._tab.vtable().get(Field::VT_TYPE_TYPE);
            (within > 0).then_some((field._tab.loc() + usize::from(within), bytes))
        })
        .collect();
    for (at, kind) in places {
        if let Some(byte) = bytes.get_mut(at) {
            *byte = kind.0;
        }
    }
    Ok(([head.as_slice(), &bytes].concat(), stream.begin + 8 + length))
}

/// Whether all that a batch says of its parts lies within its body.
fn is_sound(batch: &RecordBatch, body: u64) -> bool {
    let within = |offset: i64, length: i64| {
        let end =
            u64::try_from(offset).ok().zip(u64::try_from(length).ok()).and_then(|(a, b)| a.checked_add(b));
        end.is_some_and(|end| end <= body)
    };
    // A row takes at least one bit of some column.
    let rows = u64::try_from(batch.length()).is_ok_and(|rows| rows <= body.saturating_mul(8));
    let parts =
        batch.buffers().is_none_or(|parts| parts.iter().all(|part| within(part.offset(), part.length())));
    let columns = batch.nodes().is_none_or(|columns| {
        columns.iter().all(|column| {
            column.length() >= 0
                && column.length() <= batch.length()
                && (0..=column.length()).contains(&column.null_count())
        })
    });
    rows && parts && columns
}
