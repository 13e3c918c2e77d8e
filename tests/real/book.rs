//! The book as mdBook builds it: it builds, and links of its pages lead to files and headings that are there.

use crate::fact::Fact;
use crate::project::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const FACTS: &[Fact] = &[(
    "mdbook_builds_the_book_and_its_links_lead_somewhere",
    mdbook_builds_the_book_and_its_links_lead_somewhere,
)];

/// Not pages of their own: these hold those of others, or are shown wherever a page is not found.
const COLLECTIONS: [&str; 3] = ["404.html", "print.html", "toc.html"];

fn pages(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let is_page = path.extension().is_some_and(|extension| extension == "html")
                && !COLLECTIONS.iter().any(|name| path.ends_with(name));
            if path.is_dir() {
                open.push(path);
            } else if is_page {
                found.push(path);
            }
        }
    }
    found
}

fn is_there(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => page.parent().expect("a folder").join(file),
    };
    target.is_file()
        && (heading.is_empty()
            || fs::read_to_string(&target).is_ok_and(|text| text.contains(&format!(" id=\"{heading}\""))))
}

fn mdbook_builds_the_book_and_its_links_lead_somewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("mdbook");
    command.arg("build").arg(root().join("docs")).arg("--dest-dir").arg(folder.path());
    let built = command.output().expect("mdbook starts");
    let text = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success() && !text.contains("WARN") && !text.contains("ERROR"), "{text}");
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in pages(folder.path()) {
        let text = fs::read_to_string(&page).expect("a page");
        let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            checked += 1;
            if !is_there(&page, link) {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 1000, "only {checked} links");
}
