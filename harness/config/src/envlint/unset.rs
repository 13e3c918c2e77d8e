//! The variables that every EFA recipe of AWS sets, and what happens on a p instance where one of them is unset.

use crate::diagnostic::Diagnostic;
use crate::inventory::{Instance, Inventory};
use crate::toml_reader::line_of;

struct Needed {
    name: &'static str,
    value: &'static str,
    /// What happens without it.
    without: &'static str,
    only: Only,
}

/// Where a variable is needed.
#[derive(Clone, Copy, PartialEq)]
enum Only {
    Everywhere,
    /// Where Open MPI starts the ranks.
    OpenMpi,
    /// Where programs run on the host: an image brings its own libraries.
    Host,
}

const LIBRARIES: &str =
    "/usr/local/cuda/lib:/opt/amazon/ofi-nccl/lib:/opt/amazon/efa/lib:/opt/amazon/openmpi/lib";

const NEEDED: [Needed; 5] = [
    Needed {
        name: "OMPI_MCA_btl_tcp_if_exclude",
        value: "lo,docker0,veth_def_agent",
        without: "Open MPI may connect over docker0, which has the same address on each node, and hang",
        only: Only::OpenMpi,
    },
    Needed {
        name: "OMPI_MCA_pml",
        value: "^ucx",
        without: "Open MPI may start over UCX, which finds no EFA",
        only: Only::OpenMpi,
    },
    Needed {
        name: "OMPI_MCA_btl",
        value: "tcp,self",
        without: "Open MPI may pick a transport that EFA nodes do not have",
        only: Only::OpenMpi,
    },
    Needed {
        name: "NCCL_SOCKET_IFNAME",
        value: "^docker,lo,veth",
        without: "NCCL may start over a virtual interface that no other node reaches, and hang",
        only: Only::Everywhere,
    },
    Needed {
        name: "LD_LIBRARY_PATH",
        value: LIBRARIES,
        without: "programs may find no NCCL, or no aws-ofi-nccl, and NCCL then talks TCP",
        only: Only::Host,
    },
];

/// A variable that is unset, and the line that sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unset {
    pub message: String,
    pub line: String,
}

/// What of it a real cluster's inventory leaves out. One node alone, and instances that are not AWS's, need none of it.
pub fn unset(inventory: &Inventory) -> Vec<Unset> {
    let planner = inventory.reach.planner();
    if inventory.is_simulated()
        || planner.launcher().facts().single_node
        || !is_p_instance(&inventory.instance)
    {
        return Vec::new();
    }
    let has_mpi = planner.mpi(&inventory.paths).is_some();
    let is_needed = |needed: &&Needed| match needed.only {
        Only::Everywhere => true,
        Only::OpenMpi => has_mpi,
        Only::Host => inventory.container.is_none(),
    };
    NEEDED
        .iter()
        .filter(is_needed)
        .filter(|needed| !inventory.environment.contains_key(needed.name))
        .map(|needed| Unset {
            message: format!("`{}` is not set: {}", needed.name, needed.without),
            line: format!("{} = \"{}\"", needed.name, needed.value),
        })
        .collect()
}

/// The same, each at its place in the inventory's file.
pub fn lint_unset(inventory: &Inventory, text: &str) -> Vec<Diagnostic> {
    let at = |unset: Unset| {
        let diagnostic = Diagnostic::at(&inventory.file, line_of(text, "environment"), 1, unset.message);
        diagnostic.suggest(format!("add to `[environment]`: `{}`", unset.line))
    };
    unset(inventory).into_iter().map(at).collect()
}

/// An accelerated instance with EFA, by AWS's name for it or for the one that it is like.
fn is_p_instance(instance: &Instance) -> bool {
    let is_one = |name: &str| {
        let mut letters = name.trim_start_matches("ml.").chars();
        letters.next() == Some('p') && letters.next().is_some_and(|c| c.is_ascii_digit())
    };
    is_one(&instance.name) || instance.like.as_deref().is_some_and(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Instances;
    use std::path::Path;

    const ALL: &str = "OMPI_MCA_btl_tcp_if_exclude = \"lo,docker0\"\nOMPI_MCA_pml = \"^ucx\"\nOMPI_MCA_btl = \"tcp,self\"\n\
                       NCCL_SOCKET_IFNAME = \"^docker,lo\"\nLD_LIBRARY_PATH = \"/opt/amazon/efa/lib\"\n";

    fn names(instance: &str, reach: &str, rest: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root");
        let instances = Instances::load(root).expect("profiles");
        let text = format!(
            "kind = \"real\"\ninstance = {instance}\nnodes = \"n[1-2]\"\nreach = {{ {reach} }}\n\
             paths = {{ shared = \"/fsx\" }}\n{rest}"
        );
        let inventory = Inventory::read(&text, "inventory/x.toml", &instances).expect("an inventory");
        let name = |unset: Unset| unset.line.split(' ').next().unwrap_or_default().to_owned();
        unset(&inventory).into_iter().map(name).collect()
    }

    #[test]
    fn each_of_the_five_variables_is_missed_where_it_matters() {
        let slurm = "via = \"slurm\"";
        let five: Vec<&str> = NEEDED.iter().map(|needed| needed.name).collect();
        for instance in ["\"p5\"", "\"p4d\"", "\"p6-b200\"", "{ name = \"mine\", like = \"p5en\" }"] {
            assert_eq!(names(instance, slurm, ""), five, "{instance}");
        }
        for (left_out, name) in ALL.lines().zip(["OMPI_MCA_btl_tcp", "OMPI_MCA_pml", "OMPI_MCA_btl"]) {
            let rest = ALL.replacen(&format!("{left_out}\n"), "", 1);
            let missed = names("\"p5\"", slurm, &format!("[environment]\n{rest}"));
            assert!(missed.len() == 1 && missed[0].starts_with(name), "{missed:?}");
        }
        assert_eq!(names("\"p5\"", slurm, &format!("[environment]\n{ALL}")), [] as [&str; 0]);
    }

    #[test]
    fn what_an_image_a_launcher_or_one_node_does_not_need_is_not_missed() {
        let image = "[container]\nimage = \"/fsx/nccl.sqsh\"\nmounts = [\"/fsx:/fsx\"]\n";
        assert!(!names("\"p5\"", "via = \"slurm\"", image).contains(&"LD_LIBRARY_PATH".to_owned()));
        let processes = "via = \"ssh\", start = \"processes\"";
        assert_eq!(names("\"p5\"", processes, ""), ["NCCL_SOCKET_IFNAME", "LD_LIBRARY_PATH"]);
    }
}
