//! The table of known variables: what each is for which library, from which release to which, what it may hold, and what
//! is said where it is set. Which of them contradict each other stands in `clash.rs`.

mod efa;
mod nccl;
mod others;
mod plugin;

use super::version::Version;
use crate::inventory::Transport;

/// Who reads a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Library {
    /// NCCL itself.
    Nccl,
    /// libfabric, with its EFA provider.
    Libfabric,
    /// aws-ofi-nccl, which connects NCCL with libfabric.
    Plugin,
    /// rdma-core, below libfabric.
    RdmaCore,
    /// PyTorch, where its variables once began with `NCCL_`.
    PyTorch,
    /// nccl-tests: `NCCL_TESTS_SPLIT_MASK`.
    NcclTests,
}

impl Library {
    /// As messages show it: `aws-ofi-nccl`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Library::Nccl => "NCCL",
            Library::Libfabric => "libfabric",
            Library::Plugin => "aws-ofi-nccl",
            Library::RdmaCore => "rdma-core",
            Library::PyTorch => "PyTorch",
            Library::NcclTests => "nccl-tests",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Variable {
    pub name: &'static str,
    pub library: Library,
    pub since: Option<Version>,
    pub gone: Option<Gone>,
    pub holds: Holds,
    /// Whether the library ends the process over a wrong value, where others take their default.
    pub is_fatal: bool,
    pub said: &'static [Said],
}

/// Why a variable is not to be written any more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gone {
    /// Any release that is still in use, where absent.
    pub from: Option<Version>,
    pub what: &'static str,
    pub advice: &'static str,
}

/// What a variable may hold.
#[derive(Debug, Clone, Copy)]
pub(super) enum Holds {
    Anything,
    Something,
    /// A number that is 0 or 1: `true` would be no number.
    Flag,
    /// `1`, `true`, `yes`, `on` and their opposites.
    Switch,
    Number(i64, i64),
    OneOf(&'static [&'static str]),
    /// As `OneOf`, and the case counts.
    Exactly(&'static [&'static str]),
    /// How far apart two devices may lie; numbers are the older way to say it.
    Distance(&'static [&'static str]),
    /// Words by comma, with `^` before them for all others.
    Words(&'static [&'static str]),
    /// As `Words`, for some functions or for all: `ring;allreduce:tree,ring`.
    PerFunction(&'static [Word]),
    /// A name of a file, in which no `~` is understood.
    Path,
}

/// A word that came, and may have gone, with a release.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub name: &'static str,
    pub since: Option<Version>,
    pub until: Option<Version>,
}

/// What is said of a variable that is set, beside its age.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    pub held: Held,
    pub when: When,
    pub weight: Weight,
    pub what: &'static str,
    pub advice: &'static str,
}

/// Which values a sentence is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Held {
    Any,
    On,
    Off,
    Word(&'static str),
    /// A list that leaves this word out.
    Without(&'static str),
    /// A text without these characters in it.
    Lacking(&'static str),
}

/// Where a sentence holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    Always,
    /// With releases from all of these on; they are named where the releases are unknown.
    From(&'static [(Library, Version)]),
    On(Transport),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Note,
    Warning,
}

/// Every known variable, in the order of the libraries.
pub(super) fn all() -> impl Iterator<Item = &'static Variable> + Clone {
    [nccl::VARIABLES, efa::VARIABLES, plugin::VARIABLES, others::VARIABLES].into_iter().flatten()
}

pub(super) fn find(name: &str) -> Option<&'static Variable> {
    all().find(|variable| variable.name == name)
}

impl Variable {
    const fn new(name: &'static str, library: Library, holds: Holds) -> Variable {
        Variable { name, library, since: None, gone: None, holds, is_fatal: false, said: &[] }
    }

    const fn since(self, major: u32, minor: u32) -> Variable {
        Variable { since: Some(Version::new(major, minor)), ..self }
    }

    const fn gone_from(self, major: u32, minor: u32, what: &'static str, advice: &'static str) -> Variable {
        Variable { gone: Some(Gone { from: Some(Version::new(major, minor)), what, advice }), ..self }
    }

    const fn gone(self, what: &'static str, advice: &'static str) -> Variable {
        Variable { gone: Some(Gone { from: None, what, advice }), ..self }
    }

    const fn fatal(self) -> Variable {
        Variable { is_fatal: true, ..self }
    }

    const fn said(self, said: &'static [Said]) -> Variable {
        Variable { said, ..self }
    }
}

const fn note(held: Held, when: When, what: &'static str, advice: &'static str) -> Said {
    Said { held, when, weight: Weight::Note, what, advice }
}

const fn warn(held: Held, when: When, what: &'static str, advice: &'static str) -> Said {
    Said { held, when, weight: Weight::Warning, what, advice }
}
