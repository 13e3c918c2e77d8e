//! The heads and the feet of the page of a run and of the pages of many: the same design as the pages of recipes, without the library that draws
//! charts, so that the page is small and opens at once.

use super::markup::head;
use super::policy::policy;
use super::script::{LIVE, RUN, RUN_STYLE, SITE_STYLE};
use serde::Serialize;
use std::io::{self, Write};

/// All before what is seen; `about` is the description for programs.
pub(crate) fn run_head(out: &mut dyn Write, title: &str, about: &impl Serialize) -> io::Result<()> {
    head(out, title, about, &policy(&[&RUN], RUN_STYLE), RUN_STYLE)
}

/// All behind what is seen.
pub(crate) fn run_foot(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<script>{}</script>\n</body>\n</html>", *RUN)
}

/// The same of a page of many runs.
pub(crate) fn site_head(out: &mut dyn Write, title: &str, about: &impl Serialize) -> io::Result<()> {
    head(out, title, about, &policy(&[&RUN], SITE_STYLE), SITE_STYLE)
}

/// All behind what is seen of it.
pub(crate) fn site_foot(out: &mut dyn Write) -> io::Result<()> {
    run_foot(out)
}

/// The same of a run that goes on: the page asks whoever serves it for what is new, and no other.
pub(crate) fn live_head(out: &mut dyn Write, title: &str, about: &impl Serialize) -> io::Result<()> {
    let policy = policy(&[&RUN, &LIVE], RUN_STYLE) + "; connect-src 'self'";
    head(out, title, about, &policy, RUN_STYLE)
}

/// All behind what is seen of it.
pub(crate) fn live_foot(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<script>{}</script>\n<script>{}</script>\n</body>\n</html>", *RUN, *LIVE)
}
