//! Brings what is read of files in a store to sparse files here: of Parquet the footer and the columns, each byte once;
//! other files whole. All bytes and requests are counted.

use super::super::failure::Failure;
use super::super::fetch::check_room;
use super::super::prefix::Prefix;
use super::listing::RemoteFile;
use base::digest::Sum;
use base::text::show;
use futures::{StreamExt, TryStreamExt, stream};
use nsys::export::ColumnSource;
use nsys::safe_parquet::{TAIL, column_ranges, footer_start};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::runtime::Runtime;

/// What is read at the end of a file at once: most footers are shorter.
const END: u64 = 64 << 10;
/// A gap that costs less to read than another request.
const GAP: u64 = 64 << 10;
/// Of one request.
const MOST: u64 = 8 << 20;
/// Requests on their way at the same time.
const AT_ONCE: usize = 6;
/// What is fetched whole before it is read.
const MOST_WHOLE: u64 = 4 << 30;

/// The files of one input, and what of them is here.
pub(super) struct RemoteColumns {
    prefix: Prefix,
    root: PathBuf,
    files: BTreeMap<PathBuf, RemoteFile>,
    state: Mutex<State>,
}

struct State {
    runtime: Runtime,
    there: BTreeMap<PathBuf, Vec<Range<u64>>>,
    read: u64,
    requests: usize,
}

impl RemoteColumns {
    pub(super) fn new(
        runtime: Runtime,
        prefix: Prefix,
        root: &Path,
        files: Vec<RemoteFile>,
    ) -> RemoteColumns {
        let files = files.into_iter().map(|file| (root.join(&file.path), file)).collect();
        let state = State { runtime, there: BTreeMap::new(), read: 0, requests: 0 };
        RemoteColumns { prefix, root: root.to_owned(), files, state: Mutex::new(state) }
    }

    /// Of all files together, as they lie in the store.
    pub(super) fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// Bytes and requests.
    pub(super) fn read_so_far(&self) -> (u64, usize) {
        let state = self.state();
        (state.read, state.requests)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the files that cannot be read in parts.
    pub(super) fn fetch_whole(&self) -> Result<(), Failure> {
        let whole = || self.files.iter().filter(|(_, file)| !file.is_parquet());
        let bytes = whole().map(|(_, file)| file.bytes).fold(0, u64::saturating_add);
        if bytes == 0 {
            return Ok(());
        }
        let url = show(self.prefix.url());
        if bytes > MOST_WHOLE {
            return Err(Failure::refused(format!(
                "{url}: {} MiB of SQLite or Arrow, which are not read in parts, limit {} MiB; export them with \
                 `nsys export --type=parquetdir`, or fetch them",
                bytes >> 20,
                MOST_WHOLE >> 20
            )));
        }
        self.check_room(bytes).map_err(|why| Failure::refused(format!("{url}: {why}")))?;
        eprintln!(
            "note: {url}: SQLite and Arrow are fetched whole, {} MiB: they are not read in parts",
            bytes >> 20
        );
        let mut state = self.state();
        for (path, file) in whole() {
            let at = |error: std::io::Error| Failure::interrupted(format!("{}: {error}", path.display()));
            let mut target = OpenOptions::new().write(true).open(path).map_err(at)?;
            let mut sum = Sum::default();
            let mut chunks = 0;
            let mut give = |chunk: &[u8]| {
                chunks += 1;
                sum.update(chunk);
                target.write_all(chunk)
            };
            state.runtime.block_on(self.prefix.read_by(&file.key, file.bytes, &mut give))?;
            if file.sha256.as_ref().is_some_and(|expected| *expected != sum.to_hex()) {
                return Err(Failure::refused(format!(
                    "{url}/{}: its digest differs from the manifest",
                    show(&file.key)
                )));
            }
            state.read += file.bytes;
            state.requests += chunks;
        }
        Ok(())
    }

    fn check_room(&self, bytes: u64) -> Result<(), String> {
        check_room(self.root.parent().unwrap_or(&self.root), bytes)
    }

    /// Brings what is missing of these ranges.
    fn fill(
        &self,
        state: &mut State,
        path: &Path,
        file: &RemoteFile,
        wanted: &[Range<u64>],
    ) -> Result<(), String> {
        let there = state.there.entry(path.to_owned()).or_default();
        let missing = missing(wanted, there);
        let bytes: u64 = missing.iter().map(|range| range.end - range.start).sum();
        if missing.is_empty() {
            return Ok(());
        }
        self.check_room(bytes)?;
        let target = OpenOptions::new().write(true).open(path).map_err(|error| error.to_string())?;
        let pieces: Vec<Range<u64>> = missing.iter().flat_map(pieces).collect();
        let brought = async {
            let read = |range: Range<u64>| async move {
                let bytes = self.prefix.range(&file.key, range.clone(), file.bytes).await?;
                Ok::<_, Failure>((range, bytes))
            };
            let mut reading = stream::iter(pieces.iter().cloned()).map(read).buffer_unordered(AT_ONCE);
            while let Some((range, bytes)) = reading.try_next().await? {
                target.write_all_at(&bytes, range.start).map_err(Failure::interrupted)?;
            }
            Ok::<_, Failure>(())
        };
        state.runtime.block_on(brought).map_err(|failure| failure.to_string())?;
        state.read += bytes;
        state.requests += pieces.len();
        there.extend(missing);
        Ok(())
    }

    fn footer(&self, state: &mut State, path: &Path, file: &RemoteFile) -> Result<(), String> {
        if file.bytes < TAIL {
            return Err("too short for Parquet".to_owned());
        }
        let end = file.bytes.saturating_sub(END)..file.bytes;
        self.fill(state, path, file, std::slice::from_ref(&end))?;
        let mut tail = [0; TAIL as usize];
        let read = File::open(path).and_then(|local| local.read_exact_at(&mut tail, file.bytes - TAIL));
        read.map_err(|error| error.to_string())?;
        let start = footer_start(tail, file.bytes)?;
        let footer = start..file.bytes;
        self.fill(state, path, file, std::slice::from_ref(&footer))
    }
}

impl ColumnSource for RemoteColumns {
    fn bring(&self, table: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<(), String> {
        let Some(file) = self.files.get(table).filter(|file| file.is_parquet()) else { return Ok(()) };
        // One table at a time: several readers of one file bring it once.
        let mut state = self.state();
        self.footer(&mut state, table, file)?;
        let mut local = File::open(table).map_err(|error| error.to_string())?;
        let ranges = column_ranges(&mut local, wanted)?;
        self.fill(&mut state, table, file, &ranges)
    }
}

/// What of some ranges is not there yet; ranges with a small gap between them are one.
fn missing(wanted: &[Range<u64>], there: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<&Range<u64>> = there.iter().collect();
    sorted.sort_by_key(|range| range.start);
    let mut parts: Vec<Range<u64>> = Vec::new();
    for range in wanted {
        let mut from = range.start;
        for known in &sorted {
            if known.end <= from || known.start >= range.end {
                continue;
            }
            if known.start > from {
                parts.push(from..known.start);
            }
            from = known.end;
        }
        if from < range.end {
            parts.push(from..range.end);
        }
    }
    parts.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if part.start <= last.end.saturating_add(GAP) => last.end = last.end.max(part.end),
            _ => joined.push(part),
        }
    }
    joined
}

/// Of one request each.
fn pieces(range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let (mut from, end) = (range.start, range.end);
    std::iter::from_fn(move || {
        let piece = from..end.min(from.saturating_add(MOST));
        from = piece.end;
        (piece.start < piece.end).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_brought_a_second_time_and_near_parts_are_one_request() {
        let far = 1 << 30;
        let ranges = |ends: &[(u64, u64)]| ends.iter().map(|(from, to)| *from..*to).collect::<Vec<_>>();
        for (wanted, there, expected) in [
            (&[(0, 10)][..], &[][..], &[(0, 10)][..]),
            (&[(0, 10)], &[(0, 10)], &[]),
            (&[(0, 100)], &[(20, 30), (50, 60)], &[(0, 100)]),
            (&[(0, far)], &[(1000, far - 1000)], &[(0, 1000), (far - 1000, far)]),
            (&[(0, 10), (20, 30)], &[], &[(0, 30)]),
            (&[(0, 10), (far, far + 10)], &[], &[(0, 10), (far, far + 10)]),
            (&[(far, far + 10), (0, 10)], &[(5, 10)], &[(0, 5), (far, far + 10)]),
            (&[(5, 5)], &[], &[]),
        ] {
            let found = missing(&ranges(wanted), &ranges(there));
            assert_eq!(found, ranges(expected), "{wanted:?} with {there:?}");
        }
    }

    #[test]
    fn a_long_range_is_several_requests_that_cover_it() {
        let all: Vec<Range<u64>> = pieces(&(3..2 * MOST + 5)).collect();
        assert_eq!(all, [3..MOST + 3, MOST + 3..2 * MOST + 3, 2 * MOST + 3..2 * MOST + 5]);
        assert_eq!(pieces(&(7..7)).count(), 0);
    }
}
