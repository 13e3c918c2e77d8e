//! Any bytes as an SQLite export: it is opened or refused, and each declared table is read or refused.
//!
//!     cargo +nightly fuzz run sqlite_export        (in harness/recipes)

#![no_main]

use libfuzzer_sys::fuzz_target;
use recipes::source::nsys_export::Export;
use recipes::tables::LIST;
use std::cell::RefCell;
use std::io::Write;

thread_local! {
    static FILE: RefCell<Option<tempfile::NamedTempFile>> = const { RefCell::new(None) };
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with_borrow_mut(|file| {
        let file = file.get_or_insert_with(|| tempfile::NamedTempFile::new().expect("a file"));
        file.as_file().set_len(0).expect("emptied");
        let mut to = file.reopen().expect("opened");
        // What does not begin so is refused at once, and nothing is learnt from it.
        to.write_all(b"SQLite format 3\0").and_then(|()| to.write_all(bytes)).expect("written");
        let Ok(export) = Export::open(file.path()) else { return };
        for spec in LIST {
            let _ = export.table(spec);
        }
    });
});
