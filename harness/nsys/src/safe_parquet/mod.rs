//! Parquet files from untrusted sources: nodes leave them, and bundles bring them. The library that decodes them
//! trusts their metadata, so a file's footer, page sizes and texts are checked before.

mod copy;
mod footer;
mod ranges;
mod sizes;
#[cfg(test)]
mod tests;
mod thrift;

pub(crate) use copy::copy_columns;
pub use ranges::{TAIL, column_ranges, footer_start};
pub use sizes::{Refused, UNPACKED, check_columns, check_frame, unpacked_limit};

use polars_parquet::parquet::metadata::FileMetadata;
use polars_parquet::parquet::read::read_metadata;
use std::io::{Read, Seek};

/// The library panics where a file is not as its footer says. A file that one node left broken is an error of that file,
/// and not the end of the whole run.
pub fn guarded<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    let broken = "damaged Parquet: data does not match the footer; fetch or export it again";
    crate::guarded::guarded(read).ok_or_else(|| broken.to_owned())
}

/// What the footer says. A second schema that some writers put beside the file's own is left out: it may nest without
/// end.
pub fn metadata(file: &mut (impl Read + Seek)) -> Result<FileMetadata, String> {
    footer::check(file)?;
    let metadata = read_metadata(file).map_err(|error| error.to_string())?;
    Ok(FileMetadata { key_value_metadata: None, ..metadata })
}
