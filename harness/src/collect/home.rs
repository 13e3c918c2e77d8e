//! A file that has come: it lies in the run's folder from here on, without what is secret in it. How many secrets that
//! were is told, and the digest is that of what lies there.

use crate::artefact::{CollectedFile, ExpectedFile, PlannedCase, PlannedJob};
use crate::digest::sha256;
use crate::redact::{Redacted, Redactor};
use crate::store::{Store, StoreError};
use recipes::source::nsys_export;

/// How tables of exports begin.
const TABLE: &[u8] = b"PAR1";

/// Gives what lies there as well: nobody reads what came.
pub fn put_home(
    case: &PlannedCase,
    planned: &PlannedJob,
    file: &ExpectedFile,
    bytes: &[u8],
    store: &Store,
) -> Result<(CollectedFile, Vec<u8>), StoreError> {
    let Redacted { bytes, count } = without_secrets(bytes, store.redactor());
    store.write(&store.raw(&case.name, &planned.name).join(&file.name), &bytes)?;
    let collected = CollectedFile {
        job: planned.name.clone(),
        path: format!("raw/{}/{}", planned.name, file.name),
        kind: file.kind,
        node: file.node.clone(),
        part: file.part.clone(),
        rank: file.rank,
        bytes: bytes.len() as u64,
        sha256: sha256(&bytes),
        redacted: count,
    };
    Ok((collected, bytes))
}

/// The texts of a table are packed: it is read, and written anew where there is a secret among them.
fn without_secrets(bytes: &[u8], redactor: &Redactor) -> Redacted {
    if bytes.starts_with(TABLE) {
        let clean = |text: &[u8]| {
            let Redacted { bytes, count } = redactor.bytes(text);
            (count > 0).then_some(bytes)
        };
        match nsys_export::cleaned(bytes, &clean) {
            Ok(Some((bytes, count))) => return Redacted { bytes, count },
            Ok(None) => return Redacted { bytes: bytes.to_vec(), count: 0 },
            // No reader will get further than this one did, and what stands in it as it is can be seen.
            Err(_) => {}
        }
    }
    redactor.bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_begins_like_a_table_has_its_secrets_masked() {
        let redactor = Redactor::default();
        let told = without_secrets(b"PAR1\0HF_TOKEN=abc\0", &redactor);
        assert_eq!(told, Redacted { bytes: b"PAR1\0HF_TOKEN=***\0".to_vec(), count: 1 });
    }

    #[test]
    fn a_table_is_written_without_its_secrets_and_kept_as_it_is_where_it_has_none() {
        use recipes::tables::write::strings;
        let table = |text: &str| strings(&[(1, text.to_owned()), (2, "b".to_owned())]).expect("a table");
        let redactor = Redactor::default();
        let told = without_secrets(&table("HF_TOKEN=abc"), &redactor);
        assert_eq!(told.count, 1);
        let finds = |text: &[u8]| nsys_export::cleaned(&told.bytes, &|seen| (seen == text).then(Vec::new));
        assert_eq!(finds(b"HF_TOKEN=abc"), Ok(None));
        assert!(finds(b"HF_TOKEN=[redacted]").is_ok_and(|found| found.is_some()));
        let plain = table("a");
        assert_eq!(without_secrets(&plain, &redactor), Redacted { bytes: plain, count: 0 });
    }
}
