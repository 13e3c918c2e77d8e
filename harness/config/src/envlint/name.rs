//! Unknown names: a typo, another spelling of a known one, or a name that is not in the table.

use super::table::{self, Library, Variable};
use super::{Issue, Severity};
use base::suggest;

/// Of whom a name is by its beginning, and who that is.
const FAMILIES: [(&str, Library); 6] = [
    ("NCCL_TESTS_", Library::NcclTests),
    ("OFI_NCCL_", Library::Plugin),
    ("NCCL_", Library::Nccl),
    ("FI_", Library::Libfabric),
    ("RDMAV_", Library::RdmaCore),
    ("IBV_", Library::RdmaCore),
];

/// Providers of libfabric beside EFA, whose variables are not known here and do not touch it.
const OTHER_PROVIDERS: [&str; 18] = [
    "FI_TCP_",
    "FI_SHM_",
    "FI_SM2_",
    "FI_VERBS_",
    "FI_OFI_",
    "FI_UDP_",
    "FI_PSM2_",
    "FI_PSM3_",
    "FI_CXI_",
    "FI_OPX_",
    "FI_SOCKETS_",
    "FI_NET_",
    "FI_LNX_",
    "FI_UCX_",
    "FI_MLX_",
    "FI_GNI_",
    "FI_HOOK_",
    "FI_USNIC_",
];

/// Shorter names resemble too much by chance.
const LEAST_LETTERS: usize = 8;

/// The issue with a name that is not in the table; nothing for names of other programs.
pub(super) fn unknown(name: &str) -> Option<Issue> {
    let meant = meant(name);
    if let Some(variable) = meant {
        let is_case = variable.name.eq_ignore_ascii_case(name);
        let why = if is_case { "must be in capitals" } else { "is misspelt" };
        let message = format!("`{name}` {why}: no library reads it");
        let advice = advice(variable);
        return Some(Issue { severity: Severity::Warning, message, advice });
    }
    let (_, library) = FAMILIES.iter().find(|(family, _)| name.starts_with(family))?;
    if OTHER_PROVIDERS.iter().any(|other| name.starts_with(other)) {
        return None;
    }
    let message = match library {
        Library::RdmaCore => format!("`{name}` configures rdma-core directly, bypassing libfabric"),
        _ => format!("`{name}` is not a known variable of {}", library.name()),
    };
    let advice = "check its spelling, and whether it is still read".to_owned();
    Some(Issue { severity: Severity::Note, message, advice })
}

fn meant(name: &str) -> Option<&'static Variable> {
    let upper = name.to_ascii_uppercase();
    if let Some(variable) = table::find(&upper) {
        return Some(variable);
    }
    if name.len() < LEAST_LETTERS {
        return None;
    }
    // A name of the family is closer at hand than one that only looks like it.
    let is_family = FAMILIES.iter().any(|(family, _)| upper.starts_with(family));
    let most = if is_family && name.len() >= 12 { 2 } else { 1 };
    let near = suggest::within(&upper, table::all().map(|variable| variable.name), most)?;
    table::find(near)
}

/// The right name, with its own issue if it has one.
fn advice(variable: &Variable) -> String {
    let gone = variable.gone.map(|gone| format!(", which {}; {}", gone.what, gone.advice));
    let warned = || {
        let said = variable.said.iter().find(|said| matches!(said.held, table::Held::Any))?;
        Some(format!(", which {}; {}", said.what, said.advice))
    };
    let behind = gone.or_else(warned).unwrap_or_default();
    format!("did you mean `{}`{}{behind}", variable.name, if behind.is_empty() { "?" } else { "" })
}
