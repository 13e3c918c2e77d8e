//! For whom a JUnit document is written: what its reader accepts, and from where it looks for attached files.

/// A reader of the document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JunitFlavor {
    /// With all that most readers know: properties of testcases, and counts of what was skipped.
    #[default]
    Default,
    /// Valid by `junit-10.xsd` of Jenkins' xUnit plugin: properties of testcases are lines of their output.
    Jenkins,
    /// As the default; attachments are looked for from the project's root.
    Gitlab,
}

impl JunitFlavor {
    /// By the value of `--junit-flavor`.
    pub fn named(name: &str) -> Option<JunitFlavor> {
        match name {
            "default" => Some(JunitFlavor::Default),
            "jenkins" => Some(JunitFlavor::Jenkins),
            "gitlab" => Some(JunitFlavor::Gitlab),
            _ => None,
        }
    }

    pub(super) fn has_properties_of_testcases(self) -> bool {
        self != JunitFlavor::Jenkins
    }

    /// `skipped` and `timestamp` of `testsuites`.
    pub(super) fn has_all_attributes_of_the_whole(self) -> bool {
        self != JunitFlavor::Jenkins
    }
}

/// The reader of a document, and where the run's folder is for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JunitTarget {
    /// What the reader accepts.
    pub flavor: JunitFlavor,
    /// What a path inside the run's folder begins with, such as `runs/ID/`; nothing in the run's folder itself.
    pub folder: String,
}
