//! Sets of ranks: those that are profiled, and the one of each node that samples what belongs to the whole node.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// As text `none`, `all`, `local:0`, `every:8` or `0,8`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Ranks {
    /// Not one rank.
    None,
    /// Every rank of the job.
    All,
    /// The first rank of every node.
    OnePerNode,
    /// Every so many, from rank 0 on.
    Every(u32),
    /// Sorted, none twice.
    List(Vec<u32>),
}

impl Ranks {
    /// In any order; `Ranks::None` where the list is empty.
    pub fn list(ranks: impl IntoIterator<Item = u32>) -> Self {
        let mut ranks: Vec<u32> = ranks.into_iter().collect();
        ranks.sort_unstable();
        ranks.dedup();
        if ranks.is_empty() { Ranks::None } else { Ranks::List(ranks) }
    }

    /// The ranks of a job, whose nodes hold `per_node` each, in blocks.
    pub fn in_job(&self, tasks: u32, per_node: u32) -> Vec<u32> {
        (0..tasks).filter(|rank| self.holds(*rank, rank % per_node.max(1))).collect()
    }

    /// `local` is the number of the rank on its node.
    pub fn holds(&self, rank: u32, local: u32) -> bool {
        match self {
            Ranks::None => false,
            Ranks::All => true,
            Ranks::OnePerNode => local == 0,
            Ranks::Every(n) => rank.is_multiple_of(*n),
            Ranks::List(list) => list.binary_search(&rank).is_ok(),
        }
    }

    /// Of these ranks the lowest of each node: samples that belong to the whole node are taken once.
    pub fn lowest_of_each_node(&self, tasks: u32, per_node: u32) -> Ranks {
        match self {
            Ranks::All | Ranks::OnePerNode => Ranks::OnePerNode,
            Ranks::None => Ranks::None,
            Ranks::Every(_) | Ranks::List(_) => {
                let mut lowest: BTreeMap<u32, u32> = BTreeMap::new();
                for rank in self.in_job(tasks, per_node) {
                    lowest.entry(rank / per_node.max(1)).or_insert(rank);
                }
                Ranks::list(lowest.into_values())
            }
        }
    }
}

impl fmt::Display for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ranks::None => f.write_str("none"),
            Ranks::All => f.write_str("all"),
            Ranks::OnePerNode => f.write_str("local:0"),
            Ranks::Every(n) => write!(f, "every:{n}"),
            Ranks::List(list) => {
                let list: Vec<String> = list.iter().map(u32::to_string).collect();
                f.write_str(&list.join(","))
            }
        }
    }
}

impl TryFrom<String> for Ranks {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bad = || format!("invalid set of ranks: `{}`", text.escape_debug());
        match text.as_str() {
            "none" => return Ok(Ranks::None),
            "all" => return Ok(Ranks::All),
            "local:0" => return Ok(Ranks::OnePerNode),
            _ => {}
        }
        if let Some(n) = text.strip_prefix("every:") {
            return n.parse().ok().filter(|n| *n > 0).map(Ranks::Every).ok_or_else(bad);
        }
        let list: Option<Vec<u32>> = text.split(',').map(|rank| rank.parse().ok()).collect();
        list.map(Ranks::list).ok_or_else(bad)
    }
}

impl From<Ranks> for String {
    fn from(ranks: Ranks) -> String {
        ranks.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_selection_gives_its_ranks() {
        assert_eq!(Ranks::All.in_job(4, 2), [0, 1, 2, 3]);
        assert_eq!(Ranks::OnePerNode.in_job(16, 8), [0, 8]);
        assert_eq!(Ranks::Every(3).in_job(8, 4), [0, 3, 6]);
        assert_eq!(Ranks::list([9, 1, 9]).in_job(16, 8), [1, 9]);
        assert_eq!(Ranks::list([99]).in_job(16, 8), [] as [u32; 0]);
    }

    #[test]
    fn the_node_s_own_sampling_is_done_by_exactly_one_rank_of_each_profiled_node() {
        assert_eq!(Ranks::All.lowest_of_each_node(16, 8), Ranks::OnePerNode);
        assert_eq!(Ranks::Every(3).lowest_of_each_node(16, 8), Ranks::list([0, 9]));
        assert_eq!(Ranks::list([3, 5, 12]).lowest_of_each_node(16, 8), Ranks::list([3, 12]));
        assert_eq!(Ranks::list([0]).lowest_of_each_node(16, 8), Ranks::list([0]));
    }

    #[test]
    fn a_set_of_ranks_is_read_back_as_it_is_written() {
        for ranks in [
            Ranks::None,
            Ranks::All,
            Ranks::OnePerNode,
            Ranks::Every(8),
            Ranks::list([0]),
            Ranks::list([0, 8]),
        ] {
            assert_eq!(Ranks::try_from(ranks.to_string()), Ok(ranks));
        }
        for text in ["", "every:0", "every:", "local:1", "1,", "-1", "a"] {
            assert!(Ranks::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
