//! Names of a site that leave it in a bundle: each name in an inventory must be gone, and what is everybody's must stay.

use super::pseudonyms::Pseudonyms;
use super::site_names::{add, pseudonyms_for};
use config::inventory::{Instances, Inventory};

fn inventory(reach: &str) -> Inventory {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(root).expect("sound instances");
    let text = format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"acme-[01-04]\"\n[reach]\n{reach}\n[paths]\n\
         shared = \"/fsx/jdoe/harness/\"\nnccl_tests = \"/opt/acme/tests\"\nmpirun = \"/opt/acme/mpi/mpirun\"\n\
         [groups]\nrack-berlin = \"acme-[01-02]\"\nrack-paris = \"acme-[03-04]\"\n"
    );
    Inventory::read(&text, "inventory/acme-east.toml", &instances).expect("an inventory")
}

#[test]
fn nodes_paths_groups_and_slurm_names_of_an_inventory_are_replaced() {
    let slurm = "via = \"slurm\"\npartition = \"acme-gpu\"\naccount = \"secret-lab\"\nqos = \"normal\"";
    let mut names = pseudonyms_for(&inventory(slurm));
    let shown = names.text(
        "acme-02 in rack-paris of acme-east: sbatch --partition=acme-gpu --account=secret-lab --qos=normal \
         /fsx/jdoe/harness/run-1 /opt/acme/tests/all_reduce_perf /opt/acme/mpi/mpirun p5 gpu",
    );
    assert_eq!(
        shown,
        "node-002 in group-2 of cluster-1: sbatch --partition=name-1 --account=name-2 --qos=normal \
         /shared/run-1 /nccl-tests/all_reduce_perf /program p5 gpu"
    );
    for known in ["acme-02", "rack-berlin", "acme-gpu", "secret-lab", "/opt/acme/tests"] {
        assert_eq!(names.first_left(&format!("x{known}x")), Some(known), "{known}");
    }
}

#[test]
fn the_user_of_ssh_is_replaced_and_plain_or_short_names_are_not() {
    let mut names = pseudonyms_for(&inventory("via = \"ssh\"\nuser = \"mueller\""));
    assert_eq!(names.text("ssh mueller@acme-01"), "ssh name-1@node-001");
    let of_all = inventory("via = \"ssh\"\nuser = \"mueller\"");
    for (name, shown) in [("ab", "ab"), ("abc", "other"), ("root", "root"), ("p5", "p5"), ("batch", "batch")]
    {
        let mut one = Pseudonyms::default();
        add(&mut one, &of_all, "other", name);
        assert_eq!(one.text(name), shown);
    }
}

#[test]
fn addresses_hosts_and_ranges_are_replaced_as_a_whole() {
    let nodes: Vec<String> = (1..=4).map(|n| format!("acme-{n:02}")).collect();
    let mut names = Pseudonyms::for_nodes(&nodes);
    for (text, shown) in [
        ("acme-[01-02]x", "acme-[01-02]x"),
        ("acme-[01-02] acme-[] [01]", "node-[001-002] acme-[] [01]"),
        ("10.1.2.3x", "10.1.2.3x"),
        ("10.1.2.3", "address-1"),
        ("a@b", "a@b"),
        ("a@b.c", "a@b.c"),
        ("a@b.c1", "a@b.c1"),
        ("a@b.de", "address-2"),
        ("ip-10-0-1-7", "host-1"),
        ("ip-10-0-1", "ip-10-0-1"),
        ("ip-10-0-1-777", "ip-10-0-1-777"),
        ("one\\nacme-01", "one\\nnode-001"),
        ("1::2", "address-3"),
        ("a::b", "a::b"),
        ("\\acme-01", "\\node-001"),
    ] {
        assert_eq!(names.text(text), shown, "{text}");
    }
}
