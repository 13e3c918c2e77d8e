//! Where each table goes, decided before anything is computed: two tables are never written to one file.

use super::Order;
use super::request::{Output, TableRequest};
use nsys::report_file::ReportFile;
use recipes::result_table::{FORMS, Form, find_form};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// One table of one input: its format, and its file; stdout if there is none.
pub(super) struct Target<'a> {
    pub asked: &'a TableRequest,
    pub form: Form,
    pub file: Option<PathBuf>,
}

/// Of each report, in the order of what is asked for.
pub(super) fn all<'a>(order: &'a Order, reports: &[ReportFile]) -> Result<Vec<Vec<Target<'a>>>, String> {
    let mut files = HashSet::new();
    let mut all = Vec::new();
    for report in reports {
        let targets = order.asked.iter().map(|asked| target(order, asked, &report.base));
        let targets: Vec<Target> = targets.collect::<Result<_, _>>()?;
        for file in targets.iter().filter_map(|target| target.file.as_ref()) {
            if !files.insert(file.clone()) {
                return Err(format!(
                    "--output: two tables would be written to `{}`; `.` names each file after its input",
                    file.display()
                ));
            }
        }
        all.push(targets);
    }
    Ok(all)
}

fn target<'a>(order: &Order, asked: &'a TableRequest, input: &Path) -> Result<Target<'a>, String> {
    let by_place = if asked.output == Output::Console && order.is_terminal { "column" } else { "csv" };
    let form = asked.form.clone().unwrap_or_else(|| find_form(by_place).unwrap_or(FORMS[0]).plain());
    let base = match &asked.output {
        Output::Console => return Ok(Target { asked, form, file: None }),
        Output::Derived if order.inputs.is_opened(input) => {
            let name = input.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Err(format!(
                "--output `.`: nothing is written beside {name}, which lies in an object store; give `-` or a folder"
            ));
        }
        Output::Derived => input.to_owned(),
        Output::Folder(folder) => folder.join(input.file_name().unwrap_or_default()),
        Output::Base(base) => base.clone(),
    };
    let mut name = base.into_os_string();
    name.push(format!("_{}", asked.report.name));
    for word in &asked.words {
        name.push(format!("_{}", plain(word)));
    }
    if let Some(range) = &order.range {
        name.push(format!("_nvtx={}", plain(range)));
    }
    name.push(format!(".{}", form.spec().extension));
    Ok(Target { asked, form, file: Some(PathBuf::from(name)) })
}

/// Part of a file's name, which a slash would end.
fn plain(text: &str) -> String {
    text.replace('/', "-")
}
