//! What the linter says of environments that were really used, and of each way to be wrong.

use super::*;
use crate::diagnostic::Diagnostic;

fn known(nccl: &str, libfabric: &str, plugin: &str) -> Versions {
    let version = |text: &str| Some(Version::parse(text).expect("a version"));
    Versions {
        nccl: version(nccl),
        libfabric: version(libfabric),
        plugin: version(plugin),
        pytorch: version("2.4.0"),
        transport: Some(Transport::Rdma),
    }
}

fn current() -> Versions {
    known("2.27.5", "1.22.0", "1.14.2")
}

/// Severity, name of the variable and the rest, one a line.
fn findings(env: &[(&str, &str)], versions: &Versions) -> Vec<String> {
    lint(env, versions).iter().map(super::message_tests::line).collect()
}

fn one(name: &str, value: &str) -> String {
    findings(&[(name, value)], &current()).join("\n")
}

#[test]
fn exports_of_a_published_nccl_script_are_reported_as_superfluous_or_renamed() {
    let script = [
        ("FI_EFA_USE_DEVICE_RDMA", "1"),
        ("FI_PROVIDER", "efa"),
        ("FI_EFA_FORK_SAFE", "1"),
        ("FI_LOG_LEVEL", "1"),
        ("FI_EFA_ENABLE_SHM_TRANSFER", "1"),
        ("NCCL_ASYNC_ERROR_HANDLING", "1"),
        ("NCCL_DEBUG", "INFO"),
        ("OFI_NCCL_ROUND_ROBIN_THRESHOLD", "262144"),
    ];
    assert_eq!(
        findings(&script, &current()),
        [
            "note: `FI_EFA_USE_DEVICE_RDMA=1` is not needed; remove it",
            "note: `FI_PROVIDER=efa` is not needed; remove it",
            "note: `FI_EFA_FORK_SAFE=1` is not needed: the plugin sets it where it matters, and from Linux 5.13 on it does \
             nothing; remove it",
            "warning: `FI_LOG_LEVEL` must be one of `warn`, `trace`, `info`, `debug`, libfabric ignores it: \"1\"; correct \
             or remove it",
            "note: `FI_EFA_ENABLE_SHM_TRANSFER=1` is not needed: under NCCL the provider's own shared memory is off; remove \
             it",
            "warning: `NCCL_ASYNC_ERROR_HANDLING` has another name from PyTorch 2.2 on; write \
             `TORCH_NCCL_ASYNC_ERROR_HANDLING`",
            "warning: `OFI_NCCL_ROUND_ROBIN_THRESHOLD` has another name in current releases; write \
             `OFI_NCCL_MIN_STRIPE_SIZE`",
        ]
    );
}

#[test]
fn unknown_versions_are_reported_as_a_condition() {
    let unknown = findings(&[("FI_EFA_USE_DEVICE_RDMA", "1")], &Versions::default());
    assert_eq!(
        unknown,
        [
            "note: `FI_EFA_USE_DEVICE_RDMA=1` is not needed, from libfabric 1.18 and aws-ofi-nccl 1.7 on; remove it"
        ]
    );
    let half = Versions { libfabric: Version::parse("1.22.0"), ..Versions::default() };
    let half = findings(&[("FI_EFA_USE_DEVICE_RDMA", "1")], &half);
    assert!(half[0].contains("is not needed, from aws-ofi-nccl 1.7 on"), "{half:?}");
}

#[test]
fn an_older_plugin_needs_what_a_newer_one_does_without() {
    let old = known("2.18.5", "1.17.0", "1.5.0-aws");
    let set = [("FI_EFA_USE_DEVICE_RDMA", "1"), ("FI_PROVIDER", "efa"), ("NCCL_PROTO", "simple")];
    assert_eq!(findings(&set, &old), [] as [&str; 0]);
    let absent = findings(&[], &old);
    assert_eq!(absent.len(), 3, "{absent:?}");
    assert!(
        absent[0].contains("aws-ofi-nccl 1.5 needs (all before 1.7); set `FI_EFA_USE_DEVICE_RDMA=1`"),
        "{absent:?}"
    );
    assert_eq!(findings(&[], &current()), [] as [&str; 0]);
    assert_eq!(lint::<&str, &str>(&[], &old)[0].at, 0, "about none of those that are set");
}

#[test]
fn slips_of_the_finger_are_named_with_what_was_meant() {
    for (name, meant) in [
        ("NCCL_DEBGU", "did you mean `NCCL_DEBUG`?"),
        ("NCLL_DEBUG", "did you mean `NCCL_DEBUG`?"),
        ("nccl_debug", "must be in capitals"),
        ("NCCL_MIN_CHANNELS", "did you mean `NCCL_MIN_NCHANNELS`?"),
        ("NCCL_SOCKET_IFNAM", "did you mean `NCCL_SOCKET_IFNAME`?"),
        ("FI_EFA_USE_DEVICE_RMDA", "did you mean `FI_EFA_USE_DEVICE_RDMA`?"),
        ("RDMAV_FORM_SAFE", "did you mean `RDMAV_FORK_SAFE`, which configures rdma-core directly"),
        ("NCCL_TREE_TRESHOLD", "did you mean `NCCL_TREE_THRESHOLD`, which is not read"),
    ] {
        let found = one(name, "1");
        assert!(found.starts_with("warning: ") && found.contains(meant), "{name}: {found}");
    }
}

#[test]
fn strangers_of_the_family_are_said_to_be_unknown_and_all_others_are_left_alone() {
    assert_eq!(
        one("NCCL_FASTRAK_NUM_FLOWS", "2"),
        "note: `NCCL_FASTRAK_NUM_FLOWS` is not a known variable of NCCL; check its spelling, \
         and whether it is still read"
    );
    assert!(
        one("RDMAV_SOMETHING_ELSE", "1").starts_with("note: `RDMAV_SOMETHING_ELSE` configures rdma-core")
    );
    for name in
        ["PATH", "LD_LIBRARY_PATH", "FI_TCP_IFACE", "TORCH_NCCL_BLOCKING_WAIT", "FI", "NCCLX", "FIX_ME"]
    {
        assert_eq!(one(name, "x"), "", "{name}");
    }
}

#[test]
fn invalid_values_are_reported() {
    for (name, value, message) in [
        ("NCCL_DEBUG", "DEBUG", "must be one of `VERSION`, `WARN`"),
        ("NCCL_IB_DISABLE", "true", "must be `0` or `1`, NCCL ignores it: \"true\""),
        ("NCCL_SOCKET_IFNAME", "", "must be a value"),
        ("NCCL_SOCKET_FAMILY", "af_inet", "must be one of `AF_INET`"),
        ("NCCL_CROSS_NIC", "3", "a whole number from 0 to 2"),
        ("NCCL_NTHREADS", "96", "must be one of `64`"),
        ("NCCL_BUFFSIZE", "8M", "a whole number from 0"),
        ("NCCL_NET_GDR_LEVEL", "NVL", "must be one of `LOC`, `PIX`"),
        ("NCCL_P2P_LEVEL", "4", "as a number has another meaning in each release"),
        (
            "NCCL_DEBUG_SUBSYS",
            "INIT,NETT",
            "has a value that NCCL does not know: `NETT`; did you mean `NET`?",
        ),
        ("NCCL_TOPO_FILE", "~/topo.xml", "without `~`"),
        ("NCCL_DEBUG_FILE", "/tmp/nccl.log", "one file for all processes"),
        ("FI_EFA_USE_HUGE_PAGE", "maybe", "must be `0` or `1`"),
        ("FI_EFA_USE_DEVICE_RDMA", "0", "turns RDMA of the device off"),
        ("FI_PROVIDER", "tcp", "a provider other than `efa`"),
        ("FI_PROVIDER", "^efa", "a provider other than `efa`"),
        ("NCCL_NET", "socket", "EFA is not used"),
        ("NCCL_NVTX_DISABLE", "1", "recipes over NCCL's calls find nothing"),
        ("NCCL_PROTO", "LL,LL128,Simple", "corrupts data"),
        ("NCCL_DEBUG", "INFO ", "blanks around its value"),
        ("NCCL_LL_THRESHOLD", "0", "is not read from NCCL 2.5 on"),
        ("NCCL_MAX_NRINGS", "4", "write `NCCL_MAX_NCHANNELS`"),
    ] {
        let found = one(name, value);
        assert!(found.starts_with("warning: ") && found.contains(message), "{name}={value}: {found}");
    }
    for (name, value) in [
        ("FI_EFA_TX_MIN_CREDITS", "0"),
        ("FI_EFA_IFACE", ""),
        ("NCCL_ALGO", "rign"),
        ("NCCL_ALGO", "allredcue:ring"),
        ("NCCL_PROTO", "LL64"),
    ] {
        assert!(one(name, value).starts_with("breaks the run: "), "{name}={value}: {}", one(name, value));
    }
}

#[test]
fn values_that_are_meant_are_left_alone() {
    for (name, value) in [
        ("NCCL_DEBUG", "info"),
        ("NCCL_IB_DISABLE", "0x1"),
        ("NCCL_BUFFSIZE", "010"),
        ("NCCL_SOCKET_IFNAME", "^docker,lo,veth"),
        ("NCCL_P2P_LEVEL", "NVL"),
        ("NCCL_DEBUG_SUBSYS", "^INIT,ENV"),
        ("NCCL_DEBUG_FILE", "/tmp/nccl.%h.%p"),
        ("NCCL_ALGO", "ring,collnetdirect;allreduce:tree,nvls;broadcast:^ring"),
        ("NCCL_PROTO", "^LL128"),
        ("FI_PROVIDER", "^tcp"),
        ("FI_EFA_USE_HUGE_PAGE", "off"),
        ("OFI_NCCL_TUNER_TYPE", "internal"),
    ] {
        let found = one(name, value);
        assert!(!found.contains("warning") && !found.contains("breaks"), "{name}={value}: {found}");
    }
}

#[test]
fn a_release_decides_what_is_not_yet_and_what_is_no_more() {
    let old = known("2.16.2", "1.22.0", "1.14.0");
    assert!(findings(&[("NCCL_NVLS_ENABLE", "1")], &old)[0].contains("needs NCCL 2.17, installed is 2.16.2"));
    assert!(
        findings(&[("NCCL_ALGO", "NVLS")], &old)[0]
            .starts_with("warning: `NCCL_ALGO` has a value that exists from NCCL 2.17")
    );
    assert!(
        findings(&[("NCCL_ALGO", "nonsense")], &old)[0].starts_with("warning: "),
        "older releases forgive it"
    );
    assert!(one("NCCL_ALGO", "Collnet").contains("was removed in NCCL 2.14"));
    let ancient = known("2.4.8", "1.22.0", "1.14.0");
    assert_eq!(findings(&[("NCCL_TREE_THRESHOLD", "0")], &ancient), [] as [&str; 0], "still read there");
}

#[test]
fn settings_that_contradict_each_other_are_reported_at_the_later_one() {
    let breaks: &[&[(&str, &str)]] = &[
        &[("FI_EFA_FORK_SAFE", "1"), ("RDMAV_HUGEPAGES_SAFE", "1")],
        &[("RDMAV_FORK_SAFE", "1"), ("RDMAV_HUGEPAGES_SAFE", "1")],
        &[("OFI_NCCL_PROTOCOL", "RDMA"), ("FI_EFA_USE_DEVICE_RDMA", "0")],
        &[("NCCL_NET", "IB"), ("NCCL_IB_DISABLE", "1")],
        &[("NCCL_NET", "AWS Libfabric"), ("NCCL_NET_PLUGIN", "none")],
        &[("NCCL_ALGO", "NVLS,NVLSTree"), ("NCCL_NVLS_ENABLE", "0")],
        &[("NCCL_COLLNET_ENABLE", "0"), ("NCCL_ALGO", "CollnetDirect")],
        &[("NCCL_ALGO", "CollnetDirect")],
        &[("NCCL_MNNVL_ENABLE", "1"), ("NCCL_CUMEM_ENABLE", "0")],
    ];
    for env in breaks {
        let findings = lint(env, &current());
        let last = env.len() - 1;
        let found = findings.iter().find(|finding| finding.severity == Severity::Breaks);
        assert_eq!(found.map(|finding| finding.at), Some(last), "{env:?}: {findings:?}");
    }
    let warns: &[(&[(&str, &str)], &str)] = &[
        (&[("FI_EFA_FORK_SAFE", "1"), ("FI_EFA_USE_HUGE_PAGE", "1")], "one at a time"),
        (&[("NCCL_P2P_DISABLE", "1"), ("NCCL_P2P_LEVEL", "NVL")], "how far they may reach"),
        (&[("NCCL_PXN_DISABLE", "1"), ("NCCL_P2P_PXN_LEVEL", "2")], "turn PXN off"),
        (&[("NCCL_MIN_NCHANNELS", "16"), ("NCCL_MAX_NCHANNELS", "8")], "16 > 8"),
        (&[("NCCL_SOCKET_NTHREADS", "16"), ("NCCL_NSOCKS_PERTHREAD", "8")], "at most 64, not: 128"),
        (&[("OFI_NCCL_GDR_FLUSH_DISABLE", "1"), ("OFI_NCCL_CUDA_FLUSH_ENABLE", "1")], "turn flushes off"),
        (&[("NCCL_NET_GDR_LEVEL", "LOC"), ("NCCL_NET_GDR_READ", "1")], "turn GPUDirect RDMA off"),
        (&[("NCCL_P2P_DISABLE", "1"), ("FI_EFA_ENABLE_SHM_TRANSFER", "1")], "join them again"),
    ];
    for (env, message) in warns {
        let found = findings(env, &current());
        assert!(
            found.iter().any(|line| line.starts_with("warning") && line.contains(message)),
            "{env:?}: {found:?}"
        );
    }
}

#[test]
fn what_does_not_contradict_is_left_alone() {
    let quiet: &[&[(&str, &str)]] = &[
        &[("NCCL_ALGO", "NVLS,Ring"), ("NCCL_NVLS_ENABLE", "0")],
        &[("NCCL_ALGO", "^NVLS"), ("NCCL_NVLS_ENABLE", "0")],
        &[("NCCL_ALGO", "CollnetDirect"), ("NCCL_COLLNET_ENABLE", "1")],
        &[("NCCL_NET", "IB"), ("NCCL_IB_DISABLE", "1"), ("NCCL_IB_DISABLE", "0")],
        &[("NCCL_MIN_CTAS", "4"), ("NCCL_MAX_CTAS", "4")],
    ];
    for env in quiet {
        let findings = lint(env, &current());
        assert!(findings.iter().all(|found| found.severity < Severity::Breaks), "{env:?}: {findings:?}");
    }
    let before = known("2.20.5", "1.22.0", "1.14.0");
    let falls_back = lint(&[("NCCL_ALGO", "NVLS"), ("NCCL_NVLS_ENABLE", "0")], &before);
    assert_eq!(falls_back[0].severity, Severity::Warning, "older releases take rings then");
}

#[test]
fn the_protocol_of_rdma_writes_is_refused_where_the_instance_has_none() {
    let p4 = Versions { transport: Some(Transport::Sendrecv), ..current() };
    let env = [("OFI_NCCL_PROTOCOL", "RDMA")];
    assert_eq!(lint(&env, &p4)[0].severity, Severity::Breaks);
    assert_eq!(lint(&env, &current())[0].severity, Severity::Note, "a p5 has it anyway");
    let allowed = [("OFI_NCCL_PROTOCOL", "RDMA"), ("OFI_NCCL_DISABLE_NATIVE_RDMA_CHECK", "1")];
    assert_eq!(lint(&allowed, &p4), []);
}

fn lines(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn findings_on_suites_and_inventories_have_file_line_and_column() {
    let suite = "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"a\"\n\
                 workload = { kind = \"nccl-tests\", environment = { NCCL_DEBGU = \"INFO\", NCCL_NET = \"IB\", NCCL_IB_DISABLE = \"1\" } }\n\
                 [[case]]\nname = \"b\"\n[case.workload]\nkind = \"command\"\n[case.workload.environment]\nFI_PROVIDER = \"efa\"\n";
    let linted = lint_suite(suite, "suites/x.toml", &Versions::default());
    assert_eq!(
        lines(&linted.warnings),
        ["suites/x.toml:5:51: `NCCL_DEBGU` is misspelt: no library reads it; did you mean `NCCL_DEBUG`?"]
    );
    assert_eq!(
        lines(&linted.diagnostics),
        [
            "suites/x.toml:5:89: `NCCL_NET=IB` and `NCCL_IB_DISABLE=1` ask for InfiniBand, and turn it off: no network is \
          left; remove one of them"
        ]
    );
    assert_eq!(
        lines(&linted.notes),
        ["suites/x.toml:11:1: `FI_PROVIDER=efa` is not needed, from aws-ofi-nccl 1.6 on; remove it"]
    );
    let inventory = "kind = \"real\"\n[environment]\nNCCL_DEBUG = \"INFO\"\nnccl_net = \"x\"\n";
    let linted = lint_inventory(inventory, "inventory/x.toml", &Versions::default());
    assert_eq!(
        lines(&linted.warnings),
        [
            "inventory/x.toml:4:1: `nccl_net` must be in capitals: no library reads it; did you mean `NCCL_NET`?"
        ]
    );
    assert_eq!((linted.diagnostics, linted.notes), (Vec::new(), Vec::new()));
}

#[test]
fn no_name_stands_twice_in_the_table_and_none_is_a_slip_of_another_family() {
    let mut names: Vec<&str> = table::all().map(|variable| variable.name).collect();
    let count = names.len();
    assert!(count > 200, "{count}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for variable in table::all() {
        assert!(name::unknown(variable.name).is_none_or(|_| table::find(variable.name).is_some()));
        for said in variable.said {
            assert!(
                said.what.starts_with(|c: char| c.is_ascii_lowercase()),
                "{}: {}",
                variable.name,
                said.what
            );
            assert!(!said.what.ends_with('.') && !said.advice.is_empty(), "{}", variable.name);
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_environment_makes_it_panic(name in "[A-Z_]{0,20}", value in "\\PC{0,20}") {
        let variables: Vec<(&str, String)> =
            table::all().map(|variable| (variable.name, value.clone())).chain([(name.as_str(), value.clone())]).collect();
        let _ = lint(&variables, &Versions::default());
        let _ = lint(&variables, &current());
    }
}
