//! The launchers that there are, each by its one name.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How jobs are started, by `via` in the inventory's `reach`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Launcher {
    /// `sbatch`, on this machine or the login host.
    Slurm,
    /// Processes on each node over SSH, kept alive by heartbeats.
    Ssh,
    /// Processes of this machine; a job has one node.
    Local,
}

impl Launcher {
    /// All of them, in the order in which messages list them.
    pub const ALL: [Launcher; 3] = [Launcher::Slurm, Launcher::Ssh, Launcher::Local];

    /// As in inventories, artefacts and messages: `slurm`.
    pub const fn name(self) -> &'static str {
        match self {
            Launcher::Slurm => "slurm",
            Launcher::Ssh => "ssh",
            Launcher::Local => "local",
        }
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    #[test]
    fn a_launcher_has_one_name_in_artefacts_and_messages() {
        for launcher in Launcher::ALL {
            let name: StrDeserializer<'_, Error> = launcher.name().into_deserializer();
            assert_eq!(Launcher::deserialize(name), Ok(launcher));
        }
        assert_eq!(Launcher::ALL.map(|launcher| launcher.to_string()), ["slurm", "ssh", "local"]);
    }
}
