//! What a simulated cluster was asked to change, in its order and with its times: all that is needed, with the seed, to
//! have the same cluster again after the process that held it was ended. Questions change nothing and are not written.

use cluster::reach::Host;
use job::script;
use serde::{Deserialize, Serialize};

/// One request, as it is accepted and before it is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Entry {
    /// A file was written.
    Put {
        /// In microseconds since the run began.
        at_us: u64,
        /// Where the file lies.
        host: Host,
        /// On that host.
        path: String,
        /// All of the file.
        content: Content,
    },
    /// A command was run.
    Exec {
        /// In microseconds since the run began.
        at_us: u64,
        /// Where the command ran.
        host: Host,
        /// The program and its arguments.
        argv: Vec<String>,
    },
}

/// What was put: the scripts that every run has are recorded by name only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// By name: a script that every run has, such as `counters.sh`.
    Shared(String),
    /// UTF-8 text.
    Text(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

impl Content {
    /// `Shared` only if the bytes are those of this harness's script of that name.
    pub(crate) fn classify(path: &str, bytes: &[u8]) -> Content {
        let name = path.rsplit('/').next().unwrap_or(path);
        if script::shared_text(name).map(str::as_bytes) == Some(bytes) {
            return Content::Shared(name.to_owned());
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Content::Text(text.to_owned()),
            Err(_) => Content::Bytes(bytes.to_vec()),
        }
    }

    /// What was put; an error if this harness has no such script.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, String> {
        Ok(match self {
            Content::Shared(name) => script::shared_text(name)
                .ok_or_else(|| format!("this harness has no script named `{name}`"))?
                .as_bytes()
                .to_vec(),
            Content::Text(text) => text.as_bytes().to_vec(),
            Content::Bytes(bytes) => bytes.clone(),
        })
    }
}

impl Entry {
    /// In microseconds since the run began.
    pub fn at_us(&self) -> u64 {
        match self {
            Entry::Put { at_us, .. } | Entry::Exec { at_us, .. } => *at_us,
        }
    }
}

/// Where entries go: the run's folder.
pub(crate) type Journal = dyn Fn(&Entry) -> Result<(), String>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_comes_back_as_it_was() {
        let shared = script::COUNTERS_SH.as_bytes();
        assert_eq!(
            Content::classify("/fsx/job/counters.sh", shared),
            Content::Shared("counters.sh".to_owned())
        );
        for bytes in [shared, b"text\n".as_slice(), &[0xff, 0, 1]] {
            assert_eq!(Content::classify("/fsx/job/counters.sh", bytes).bytes(), Ok(bytes.to_vec()));
        }
        // Another script of that name is recorded in full.
        assert_eq!(Content::classify("/a/counters.sh", b"x"), Content::Text("x".to_owned()));
    }
}
