//! The reports of a run that goes on: the JUnit documents after every case, and lines of JSON as cases end.

use super::RunOptions;
use super::output::{print_quietly, report_error};
use super::reports::junit_target;
use crate::report::{self, GrowingJunit, JunitTarget, Report};
use libtest_mimic::FormatSetting;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use store::{self, Store};

pub(super) struct LiveReports<'a> {
    store: &'a Store,
    /// In the run's folder, and where the user wants it too.
    documents: RefCell<Vec<(PathBuf, GrowingJunit)>>,
    streams: bool,
    has_begun: Cell<bool>,
    /// One that cannot be written is reported once; at the end it decides the exit code.
    is_broken: Cell<bool>,
}

impl<'a> LiveReports<'a> {
    pub(super) fn new(store: &'a Store, options: &RunOptions) -> LiveReports<'a> {
        let own = (store.folder().join("junit.xml"), GrowingJunit::new(JunitTarget::default()));
        // A pipe takes the document at the end of the run, and once.
        let copy = options.junit.as_ref().filter(|path| !store::is_stream(path));
        let copy = copy.map(|path| (path.clone(), GrowingJunit::new(junit_target(path, store, options))));
        LiveReports {
            store,
            documents: RefCell::new(std::iter::once(own).chain(copy).collect()),
            streams: options.libtest.format == Some(FormatSetting::Json),
            has_begun: Cell::new(false),
            is_broken: Cell::new(false),
        }
    }

    /// Whether lines of JSON were printed: the end of the run adds the last ones only.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// The last case of the report was judged just now.
    pub(super) fn report(&self, so_far: &Report<'_>) {
        if self.streams {
            let started = (!self.has_begun.replace(true)).then(|| report::json::started(so_far));
            let last = so_far.cases.last().into_iter().flat_map(report::json::case_events);
            print_quietly(&started.into_iter().chain(last).map(|line| line + "\n").collect::<String>());
        }
        let clean = |bytes: &[u8]| self.store.redactor().bytes(bytes).bytes.to_vec();
        for (path, growing) in self.documents.borrow_mut().iter_mut() {
            let is_own = path.starts_with(self.store.folder());
            let written = growing.add(so_far, &clean).map_err(|error| error.to_string());
            let written = written.and_then(|document| {
                let written = match is_own {
                    true => self.store.write(path, &document),
                    false => store::write_output(path, &document),
                };
                written.map_err(|error| error.to_string())
            });
            if let Err(why) = written
                && !self.is_broken.replace(true)
            {
                report_error(&why);
            }
        }
    }
}
