//! Exports that lie elsewhere: a folder here stands for one, and what is read of a table is brought to its file just
//! before. Reports are opened in many places by their path alone, so that sources are known by it too.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Brings columns of tables to where they are read.
pub trait ColumnSource: Send + Sync {
    /// Of the file of a table these columns, by their names; the footer always. A file that it does not know is left
    /// alone.
    fn bring(&self, table: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<(), String>;
}

struct Registered {
    folder: PathBuf,
    source: Arc<dyn ColumnSource>,
}

static SOURCES: RwLock<Vec<Registered>> = RwLock::new(Vec::new());

/// A source is known as long as this is held.
#[derive(Debug)]
pub struct SourceGuard(PathBuf);

impl Drop for SourceGuard {
    fn drop(&mut self) {
        let mut sources = SOURCES.write().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|registered| registered.folder != self.0);
    }
}

/// From here on tables below the folder are brought by the source.
pub fn register(folder: &Path, source: Arc<dyn ColumnSource>) -> SourceGuard {
    let mut sources = SOURCES.write().unwrap_or_else(PoisonError::into_inner);
    sources.push(Registered { folder: folder.to_owned(), source });
    SourceGuard(folder.to_owned())
}

/// Whether the table is one of a source.
pub(super) fn bring(table: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let source = {
        let sources = SOURCES.read().unwrap_or_else(PoisonError::into_inner);
        let of_table = sources.iter().find(|registered| table.starts_with(&registered.folder));
        of_table.map(|registered| Arc::clone(&registered.source))
    };
    source.map_or(Ok(false), |source| source.bring(table, wanted).map(|()| true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Noting(Mutex<Vec<String>>);

    impl ColumnSource for Noting {
        fn bring(&self, table: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<(), String> {
            let columns: Vec<&str> =
                ["start", "end", "name"].into_iter().filter(|name| wanted(name)).collect();
            self.0.lock().expect("held").push(format!("{}: {}", table.display(), columns.join(" ")));
            match table.ends_with("gone.parquet") {
                true => Err("no such object".to_owned()),
                false => Ok(()),
            }
        }
    }

    #[test]
    fn what_is_read_below_a_folder_is_brought_as_long_as_its_source_is_held() {
        let folder = Path::new("/nowhere/of/this/test");
        let noting = Arc::new(Noting::default());
        let guard = register(folder, noting.clone());
        let start = |name: &str| name == "start";
        assert_eq!(bring(&folder.join("r_pqtdir/K.parquet"), &start), Ok(true));
        assert_eq!(bring(Path::new("/nowhere/of/this/test2/K.parquet"), &start), Ok(false));
        assert_eq!(bring(&folder.join("gone.parquet"), &start), Err("no such object".to_owned()));
        drop(guard);
        bring(&folder.join("gone.parquet"), &start).expect("not known any more");
        let expected = ["r_pqtdir/K.parquet: start", "gone.parquet: start"];
        let expected = expected.map(|line| format!("/nowhere/of/this/test/{line}"));
        assert_eq!(*noting.0.lock().expect("held"), expected);
    }
}
