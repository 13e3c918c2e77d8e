//! The schemas agree with the readers on the files of the other tests of this crate.

use crate::diagnostic::Diagnostics;
use crate::schema::KINDS;
use fixture::schema::{Agreement, SchemaCheck};
use recipes::catalogue::Catalogue;

/// What the schema of a kind of file and its reader say of one; they must not differ.
pub(crate) fn agreement<T>(kind: &str, text: &str, read: &Result<T, Diagnostics>) -> Agreement {
    let kind = KINDS.iter().find(|of| of.name == kind).expect("a kind of file");
    let messages = match read {
        Ok(_) => Vec::new(),
        Err(diagnostics) => diagnostics.0.iter().map(|one| one.message.clone()).collect(),
    };
    let check = SchemaCheck::new(&kind.schema(&Catalogue::built_in()));
    check.compare(text, &messages).unwrap_or_else(|why| panic!("{}: {why}", kind.name))
}
