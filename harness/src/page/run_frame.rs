//! The head and the foot of the page of a run: the same design as the pages of recipes, without the library that draws
//! charts, so that the page is small and opens at once.

use super::markup::head;
use super::policy::policy;
use super::script::{RUN, RUN_STYLE};
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
