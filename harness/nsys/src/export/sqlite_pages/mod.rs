//! Reads tables of an SQLite export from its pages, on all cores, the wanted columns alone. Files that exports do not
//! look like (a log beside them, tables with special rules) are left to `sqlite`.

mod columns;
mod create;
mod file;
mod header;
mod leaf;
mod record;
mod repeated_texts;
mod scan;
mod schema;
mod shapes;
#[cfg(test)]
mod tests;
mod tree;

use super::{Fault, sqlite, type_of};
use crate::regular_file::FileVersion;
use crate::tables::ColumnSpec;
use file::PageFile;
use header::Header;
use polars::prelude::{Column, DataFrame};
use scan::{From, Wanted};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(super) enum Opened {
    Plain(Pages),
    /// Why the whole engine has to read it.
    NotPlain(String),
}

pub(super) struct Pages {
    path: PathBuf,
    file: PageFile,
    /// As it was when it was opened.
    version: FileVersion,
    schema: schema::Schema,
}

/// Opens a file that begins as SQLite files do.
pub(super) fn open(path: &Path) -> Result<Opened, String> {
    if let Some(end) = super::sqlite::changes_beside(path) {
        return Ok(Opened::NotPlain(format!("a `{end}` file lies beside it")));
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let (length, version) = (metadata.len(), FileVersion::from(&metadata));
    let mut head = [0; header::LENGTH];
    file.read_exact_at(&mut head, 0)
        .map_err(|_| format!("truncated: {length} of {} header bytes", header::LENGTH))?;
    let file = match header::read(&head, length)? {
        Header::Plain { page_size, pages } => PageFile { file, page_size, pages },
        Header::NotPlain(why) => return Ok(Opened::NotPlain(why)),
    };
    let schema = schema::Schema::read(&file);
    let schema = schema.map_err(|why| format!("cannot read the list of tables: {why}"))?;
    Ok(Opened::Plain(Pages { path: path.to_owned(), file, version, schema }))
}

impl Pages {
    pub(super) fn names(&self) -> Vec<String> {
        self.schema.names().map(str::to_owned).collect()
    }

    /// Pages of two versions of a file may look sound together: such a file is an error.
    pub(super) fn table(
        &self,
        name: &str,
        columns: &[&'static ColumnSpec],
    ) -> Result<Option<DataFrame>, Fault> {
        let read = self.read(name, columns)?;
        self.version.check(self.file.file.metadata()).map_err(Fault::Broken)?;
        Ok(read)
    }

    fn read(&self, name: &str, columns: &[&'static ColumnSpec]) -> Result<Option<DataFrame>, Fault> {
        let mut called = self.schema.called(name);
        let Some(table) = called.next() else { return Ok(None) };
        let made = create::columns(&table.statement).filter(|_| called.next().is_none());
        let (Some(root), Some(made)) = (table.root, made) else { return self.by_engine(name, columns) };
        let mut wanted = Vec::new();
        for column in columns {
            let from = match made.iter().enumerate().find(|(_, made)| made.name == column.name) {
                // Rows may have a value that is not written.
                Some((_, made)) if made.default => return self.by_engine(name, columns),
                Some((_, made)) if made.row_number => From::RowNumber,
                Some((at, made)) => From::Field { at, real: made.real },
                None if column.required => return Err(Fault::NoColumn(column.name)),
                None => continue,
            };
            wanted.push(Wanted { name: column.name, kind: column.kind, from });
        }
        let frame = scan::table(&self.file, root, &wanted)?;
        let all = columns.iter().map(|column| match frame.column(column.name) {
            Ok(read) => read.clone(),
            Err(_) => Column::full_null(column.name.into(), frame.height(), &type_of(column.kind)),
        });
        Ok(Some(DataFrame::new(frame.height(), all.collect())?))
    }

    fn by_engine(&self, name: &str, columns: &[&'static ColumnSpec]) -> Result<Option<DataFrame>, Fault> {
        let connection = sqlite::open(&self.path).map_err(Fault::Broken)?;
        let read = sqlite::table(&connection, name, columns)?;
        // The engine opens the path, at which another file may lie by now.
        self.version.check(std::fs::metadata(&self.path)).map_err(Fault::Broken)?;
        Ok(read)
    }
}
