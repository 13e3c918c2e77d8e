//! What the linter reports of an environment: every message, as a person reads it.

use super::table::{self, Held, When};
use super::{Finding, Severity, Version, Versions, clash, lint, lint_unset};
use crate::inventory::{Instances, Inventory, Transport};
use std::path::Path;

pub(super) fn line(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Breaks => "breaks the run",
    };
    format!("{severity}: {}; {}", finding.message, finding.advice)
}

fn lines(env: &[(&str, &str)], versions: &Versions) -> Vec<String> {
    lint(env, versions).iter().map(line).collect()
}

/// Of each variable alone.
fn each(env: &[(&str, &str)], versions: &Versions) -> Vec<String> {
    env.iter().flat_map(|variable| lines(&[*variable], versions)).collect()
}

#[test]
fn messages_of_variables() {
    let mut all = Vec::new();
    for variable in table::all() {
        if variable.gone.is_some() {
            all.extend(lines(&[(variable.name, "1")], &Versions::default()));
        }
        for said in variable.said {
            let value = match said.held {
                Held::Any | Held::On => "1",
                Held::Off => "0",
                Held::Word(word) => word,
                Held::Without(_) => "tcp",
                Held::Lacking(_) => "/tmp/nccl.log",
            };
            let transport = match said.when {
                When::On(transport) => Some(transport),
                When::Always | When::From(_) => None,
            };
            all.extend(lines(&[(variable.name, value)], &Versions { transport, ..Versions::default() }));
        }
    }
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn messages_of_values() {
    let values = [
        ("NCCL_DEBUG", "DEBUG"),
        ("NCCL_DEBUG", "INFO "),
        ("NCCL_IB_DISABLE", "true"),
        ("NCCL_SOCKET_IFNAME", ""),
        ("NCCL_SOCKET_FAMILY", "af_inet"),
        ("NCCL_CROSS_NIC", "3"),
        ("NCCL_LL_BUFFSIZE", "8M"),
        ("NCCL_NET_GDR_LEVEL", "NVL"),
        ("NCCL_P2P_LEVEL", "4"),
        ("NCCL_DEBUG_SUBSYS", "INIT,NETT"),
        ("NCCL_DEBUG_SUBSYS", "XYZZY"),
        ("NCCL_TOPO_DUMP_FILE", "~/topo.xml"),
        ("NCCL_TOPO_DUMP_FILE", ""),
        ("NCCL_ALGO", "rign"),
        ("NCCL_ALGO", "allredcue:ring"),
        ("NCCL_PROTO", "xyzzy"),
        ("FI_EFA_USE_HUGE_PAGE", "maybe"),
        ("FI_EFA_TX_MIN_CREDITS", "0"),
        ("FI_EFA_IFACE", ""),
        ("OFI_NCCL_PROTOCOL", "tcp"),
    ];
    insta::assert_snapshot!(each(&values, &Versions::default()).join("\n"));
}

#[test]
fn messages_of_names() {
    let names = [
        "NCCL_DEBGU",
        "nccl_debug",
        "RDMAV_FORM_SAFE",
        "NCCL_TREE_TRESHOLD",
        "NCCL_FASTRAK_NUM_FLOWS",
        "NCCL_TESTS_SOMETHING_ELSE",
        "OFI_NCCL_SOMETHING_ELSE",
        "FI_SOMETHING_ELSE",
        "RDMAV_SOMETHING_ELSE",
    ];
    insta::assert_snapshot!(each(&names.map(|name| (name, "1")), &Versions::default()).join("\n"));
}

#[test]
fn messages_of_releases() {
    let old = Versions {
        nccl: Version::parse("2.16.2"),
        libfabric: Version::parse("1.17.0"),
        plugin: Version::parse("1.5.0-aws"),
        ..Versions::default()
    };
    let without_plugin = Versions { plugin: None, ..old };
    let current = Versions { nccl: Version::parse("2.27.5"), ..Versions::default() };
    let mut all = lines(&[], &old);
    all.extend(each(
        &[("NCCL_NVLS_ENABLE", "1"), ("NCCL_ALGO", "NVLS"), ("NCCL_ALGO", "rign")],
        &without_plugin,
    ));
    all.extend(each(&[("NCCL_ALGO", "Collnet"), ("NCCL_ALGO", "rign")], &current));
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn messages_of_contradictions() {
    let environments = [
        [("FI_EFA_FORK_SAFE", "1"), ("RDMAV_HUGEPAGES_SAFE", "1")],
        [("RDMAV_FORK_SAFE", "1"), ("RDMAV_HUGEPAGES_SAFE", "1")],
        [("FI_EFA_FORK_SAFE", "1"), ("FI_EFA_USE_HUGE_PAGE", "1")],
        [("OFI_NCCL_PROTOCOL", "RDMA"), ("FI_EFA_USE_DEVICE_RDMA", "0")],
        [("OFI_NCCL_GDR_FLUSH_DISABLE", "1"), ("OFI_NCCL_CUDA_FLUSH_ENABLE", "1")],
        [("NCCL_NET", "IB"), ("NCCL_IB_DISABLE", "1")],
        [("NCCL_NET", "AWS Libfabric"), ("NCCL_NET_PLUGIN", "none")],
        [("NCCL_ALGO", "NVLS,NVLSTree"), ("NCCL_NVLS_ENABLE", "0")],
        [("NCCL_ALGO", "CollnetDirect"), ("NCCL_COLLNET_ENABLE", "0")],
        [("NCCL_ALGO", "CollnetDirect"), ("NCCL_DEBUG", "INFO")],
        [("NCCL_MNNVL_ENABLE", "1"), ("NCCL_CUMEM_ENABLE", "0")],
        [("NCCL_P2P_DISABLE", "1"), ("NCCL_P2P_LEVEL", "NVL")],
        [("NCCL_PXN_DISABLE", "1"), ("NCCL_P2P_PXN_LEVEL", "2")],
        [("NCCL_P2P_DISABLE", "1"), ("FI_EFA_ENABLE_SHM_TRANSFER", "1")],
        [("NCCL_NET_GDR_LEVEL", "LOC"), ("NCCL_NET_GDR_READ", "1")],
        [("NCCL_MIN_NCHANNELS", "16"), ("NCCL_MAX_NCHANNELS", "8")],
        [("NCCL_SOCKET_NTHREADS", "16"), ("NCCL_NSOCKS_PERTHREAD", "8")],
    ];
    let versions = Versions { transport: Some(Transport::Sendrecv), ..Versions::default() };
    let all: Vec<String> =
        environments.iter().flat_map(|env| clash::all(env, &versions)).map(|it| line(&it)).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn messages_of_unset_variables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root");
    let instances = Instances::load(root).expect("profiles");
    let text = "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-2]\"\nreach = { via = \"slurm\" }\n\
                paths = { shared = \"/fsx\" }\n[environment]\nNCCL_DEBUG = \"INFO\"\n";
    let inventory = Inventory::read(text, "inventory/x.toml", &instances).expect("an inventory");
    let all: Vec<String> = lint_unset(&inventory, text).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(all.join("\n"));
}
