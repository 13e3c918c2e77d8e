//! Settings that contradict each other, and settings that an older release cannot do without.

use super::holds::{is_off, is_on, names, names_only, number};
use super::{Finding, Issue, Library, Severity, Version, Versions};
use crate::inventory::Transport;

/// What one side of a contradiction must be like.
#[derive(Clone, Copy)]
enum Side {
    Set,
    On,
    Off,
    NotOn,
    Is(&'static str),
    Only(&'static [&'static str]),
    Not(&'static str),
}

struct Clash {
    one: (&'static str, Side),
    other: (&'static str, Side),
    /// A setting that takes the contradiction away where it is on.
    unless: Option<&'static str>,
    transport: Option<Transport>,
    /// From this release of NCCL on nothing runs; before, or where it is not said, it only does not do what was meant.
    breaks: Breaks,
    what: &'static str,
    advice: &'static str,
}

#[derive(Clone, Copy)]
enum Breaks {
    Never,
    Always,
    From(Version),
}

const fn clash(
    one: (&'static str, Side),
    other: (&'static str, Side),
    breaks: Breaks,
    what: &'static str,
    advice: &'static str,
) -> Clash {
    Clash { one, other, unless: None, transport: None, breaks, what, advice }
}

const ONE_OF_THEM: &str = "remove one of them";
const NVLS: &[&str] = &["NVLS", "NVLSTree"];
const COLLNET: &[&str] = &["Collnet", "CollnetChain", "CollnetDirect"];
/// From here on NCCL does not fall back to rings.
const NO_FALLBACK: Breaks = Breaks::From(Version::new(2, 24));
const NO_HUGE_PAGES: &str =
    "ask for fork support and for huge pages; before Linux 5.13 the EFA provider refuses to start";

const CLASHES: &[Clash] = &[
    clash(
        ("FI_EFA_FORK_SAFE", Side::On),
        ("RDMAV_HUGEPAGES_SAFE", Side::Set),
        Breaks::Always,
        NO_HUGE_PAGES,
        "take `RDMAV_HUGEPAGES_SAFE` out",
    ),
    clash(
        ("RDMAV_FORK_SAFE", Side::Set),
        ("RDMAV_HUGEPAGES_SAFE", Side::Set),
        Breaks::Always,
        NO_HUGE_PAGES,
        "take both out",
    ),
    clash(
        ("FI_EFA_FORK_SAFE", Side::On),
        ("FI_EFA_USE_HUGE_PAGE", Side::On),
        Breaks::Never,
        "ask for fork support and for huge pages, of which the EFA provider has one at a time",
        ONE_OF_THEM,
    ),
    clash(
        ("OFI_NCCL_PROTOCOL", Side::Is("RDMA")),
        ("FI_EFA_USE_DEVICE_RDMA", Side::Off),
        Breaks::Always,
        "ask for a protocol of RDMA writes, and turn RDMA off",
        ONE_OF_THEM,
    ),
    Clash {
        unless: Some("OFI_NCCL_DISABLE_NATIVE_RDMA_CHECK"),
        transport: Some(Transport::Sendrecv),
        ..clash(
            ("OFI_NCCL_PROTOCOL", Side::Is("RDMA")),
            ("OFI_NCCL_PROTOCOL", Side::Set),
            Breaks::Always,
            "asks for RDMA writes, which this instance does not have",
            "remove it",
        )
    },
    clash(
        ("OFI_NCCL_GDR_FLUSH_DISABLE", Side::On),
        ("OFI_NCCL_CUDA_FLUSH_ENABLE", Side::On),
        Breaks::Never,
        "turn flushes off, and say how they are done",
        ONE_OF_THEM,
    ),
    clash(
        ("NCCL_NET", Side::Is("IB")),
        ("NCCL_IB_DISABLE", Side::On),
        Breaks::Always,
        "ask for InfiniBand, and turn it off: no network is left",
        ONE_OF_THEM,
    ),
    clash(
        ("NCCL_NET", Side::Is("AWS Libfabric")),
        ("NCCL_NET_PLUGIN", Side::Is("none")),
        Breaks::Always,
        "ask for the network of aws-ofi-nccl, and keep it from being loaded: no network is left",
        ONE_OF_THEM,
    ),
    clash(
        ("NCCL_ALGO", Side::Only(NVLS)),
        ("NCCL_NVLS_ENABLE", Side::Off),
        NO_FALLBACK,
        "ask for NVLS alone, and turn it off: no algorithm is left",
        ONE_OF_THEM,
    ),
    clash(
        ("NCCL_ALGO", Side::Only(COLLNET)),
        ("NCCL_COLLNET_ENABLE", Side::NotOn),
        NO_FALLBACK,
        "ask for CollNet alone, which is off: no algorithm is left",
        "set `NCCL_COLLNET_ENABLE=1` where there is such a network, or take `NCCL_ALGO` out",
    ),
    clash(
        ("NCCL_MNNVL_ENABLE", Side::Is("1")),
        ("NCCL_CUMEM_ENABLE", Side::Off),
        Breaks::Always,
        "ask for NVLink between nodes, and turn off the memory that it needs",
        ONE_OF_THEM,
    ),
    clash(
        ("NCCL_P2P_DISABLE", Side::On),
        ("NCCL_P2P_LEVEL", Side::Not("LOC")),
        Breaks::Never,
        "turn transfers between GPUs off, and say how far they may reach",
        ONE_OF_THEM,
    ),
    clash(
        ("NCCL_PXN_DISABLE", Side::On),
        ("NCCL_P2P_PXN_LEVEL", Side::Not("0")),
        Breaks::Never,
        "turn PXN off, and say where it is used",
        ONE_OF_THEM,
    ),
    clash(
        ("NCCL_P2P_DISABLE", Side::On),
        ("FI_EFA_ENABLE_SHM_TRANSFER", Side::On),
        Breaks::Never,
        "keep GPUs of a node apart, and let libfabric's own shared memory join them again",
        "set `FI_EFA_ENABLE_SHM_TRANSFER=0` where the network alone is to be measured",
    ),
    clash(
        ("NCCL_NET_GDR_LEVEL", Side::Is("LOC")),
        ("NCCL_NET_GDR_READ", Side::On),
        Breaks::Never,
        "turn GPUDirect RDMA off, and ask for it when data is sent",
        ONE_OF_THEM,
    ),
];

/// Two numbers of which the first may not be above the second.
const ORDERED: [(&str, &str); 3] = [
    ("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"),
    ("NCCL_MIN_CTAS", "NCCL_MAX_CTAS"),
    ("NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS"),
];

/// Sockets of a connection, threads times sockets of each.
const MOST_SOCKETS: i64 = 64;

/// What contradicts itself, each at the later of the two settings.
pub(super) fn all(env: &[(&str, &str)], versions: &Versions) -> Vec<Finding> {
    // What is set twice holds as set last.
    let get = |name: &str| env.iter().rposition(|(other, _)| *other == name);
    let value = |at: usize| env.get(at).map(|(_, value)| *value).unwrap_or_default();
    let mut findings = Vec::new();
    for clash in CLASHES {
        let Some(one) = get(clash.one.0).filter(|at| clash.one.1.is(Some(value(*at)))) else { continue };
        let other = get(clash.other.0);
        if !clash.other.1.is(other.map(value))
            || clash.transport.is_some_and(|transport| versions.transport != Some(transport))
            || clash.unless.and_then(get).is_some_and(|at| is_on(value(at)))
        {
            continue;
        }
        let shown = |name: &str, at: usize| format!("`{name}={}`", value(at));
        let message = match other {
            Some(other) if other != one => {
                let (one, other) = (shown(clash.one.0, one), shown(clash.other.0, other));
                format!("{one} and {other} {}", clash.what)
            }
            Some(_) => format!("{} {}", shown(clash.one.0, one), clash.what),
            None => format!("{} and no `{}` {}", shown(clash.one.0, one), clash.other.0, clash.what),
        };
        let issue =
            Issue { severity: clash.breaks.severity(versions), message, advice: clash.advice.to_owned() };
        findings.push(issue.at(other.map_or(one, |other| other.max(one))));
    }
    for (low, high) in ORDERED {
        if let (Some(one), Some(other)) = (get(low), get(high))
            && let (Some(least), Some(most)) = (number(value(one)), number(value(other)))
            && least > most
        {
            let message = format!("`{low}` is above `{high}`: {least} > {most}");
            let issue = Issue { severity: Severity::Warning, message, advice: ONE_OF_THEM.to_owned() };
            findings.push(issue.at(one.max(other)));
        }
    }
    if let (Some(one), Some(other)) = (get("NCCL_SOCKET_NTHREADS"), get("NCCL_NSOCKS_PERTHREAD"))
        && let (Some(threads), Some(sockets)) = (number(value(one)), number(value(other)))
        && threads.saturating_mul(sockets) > MOST_SOCKETS
    {
        let message = format!(
            "`NCCL_SOCKET_NTHREADS` times `NCCL_NSOCKS_PERTHREAD` is at most {MOST_SOCKETS}, not: {}",
            threads.saturating_mul(sockets)
        );
        let issue = Issue { severity: Severity::Warning, message, advice: "lower one of them".to_owned() };
        findings.push(issue.at(one.max(other)));
    }
    findings
}

/// What releases before some version cannot do without; said only where the release is known.
const NEEDED: [(&str, &str, Version); 3] = [
    ("FI_EFA_USE_DEVICE_RDMA", "1", Version::new(1, 7)),
    ("FI_PROVIDER", "efa", Version::new(1, 6)),
    ("NCCL_PROTO", "simple", Version::new(1, 6)),
];

pub(super) fn absent(env: &[(&str, &str)], versions: &Versions) -> Vec<Finding> {
    let Some(plugin) = versions.plugin else { return Vec::new() };
    let is_set = |name: &str, wanted: &str| {
        let value = env.iter().rev().find(|(other, _)| *other == name).map(|(_, value)| *value);
        // A variable that is set to something else is reported by its value.
        value.is_some_and(|value| wanted != "simple" || names(value, wanted))
    };
    let needed = NEEDED.iter().filter(|(name, wanted, before)| plugin < *before && !is_set(name, wanted));
    needed
        .map(|(name, wanted, before)| {
            let library = Library::Plugin.name();
            let message =
                format!("`{name}` is not set, which {library} {plugin} needs (all before {before})");
            let advice = format!("set `{name}={wanted}`, or install {library} {before}");
            Issue { severity: Severity::Warning, message, advice }.at(env.len())
        })
        .collect()
}

impl Side {
    fn is(self, value: Option<&str>) -> bool {
        match (self, value) {
            (Side::NotOn, value) => !value.is_some_and(is_on),
            (_, None) => false,
            (Side::Set, Some(_)) => true,
            (Side::On, Some(value)) => is_on(value),
            (Side::Off, Some(value)) => is_off(value),
            (Side::Is(wanted), Some(value)) => value.trim().eq_ignore_ascii_case(wanted),
            (Side::Not(other), Some(value)) => !value.trim().eq_ignore_ascii_case(other),
            (Side::Only(words), Some(value)) => names_only(value, words),
        }
    }
}

impl Breaks {
    /// A release that is not known is taken for a current one.
    fn severity(self, versions: &Versions) -> Severity {
        let does = match self {
            Breaks::Never => false,
            Breaks::Always => true,
            Breaks::From(release) => versions.nccl.is_none_or(|here| here >= release),
        };
        if does { Severity::Breaks } else { Severity::Warning }
    }
}
