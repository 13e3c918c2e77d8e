//! What a cluster demands of each job beside its nodes: a QOS that the partition admits, and memory where Slurm shares
//! it out.

use super::queries::once;
use crate::reach::Reach;
use base::text::show;
use std::collections::BTreeSet;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Demands {
    pub qos: Option<String>,
    /// All memory of a node: without it a job may get the default of the partition alone.
    pub mem: Option<String>,
    pub notes: Vec<String>,
}

/// `config` is what `scontrol show config` prints.
pub(super) async fn demands(reach: &dyn Reach, partition: &str, config: &str) -> Demands {
    let mut demands = Demands::default();
    let line = once(reach, &["scontrol", "--all", "--oneliner", "show", "partition", partition]).await.ok();
    let line = line.unwrap_or_default();
    let word = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key));
    let shares_memory = |types: &str| types.to_uppercase().contains("MEMORY");
    if value(config, "SelectTypeParameters").is_some_and(shares_memory)
        || word("SelectTypeParameters=").is_some_and(shares_memory)
    {
        demands.mem = Some("0".to_owned());
    }
    let Some(admitted) = word("AllowQos=").filter(|list| !list.eq_ignore_ascii_case("all")) else {
        return demands;
    };
    let admitted: Vec<&str> = admitted.split(',').collect();
    let partition_admits =
        format!("partition `{partition}` admits only the QOS `{}`", show(&admitted.join("`, `")));
    let Some(own) = own(reach).await else {
        demands.notes.push(format!("{partition_admits}; which are yours is unknown: set `qos` in `[reach]`"));
        return demands;
    };
    if own.default.is_some_and(|default| admitted.contains(&default.as_str())) {
        return demands;
    }
    demands.qos = admitted.iter().find(|name| own.all.contains(**name)).map(|name| (*name).to_owned());
    demands.notes.push(match &demands.qos {
        Some(qos) => format!("{partition_admits}; wrote qos = \"{}\"", show(qos)),
        None => format!("{partition_admits}, and none of these is yours: its jobs will be refused"),
    });
    demands
}

/// The QOS of the user who asks.
struct Own {
    all: BTreeSet<String>,
    /// Of the only association, or the same in all of them.
    default: Option<String>,
}

async fn own(reach: &dyn Reach) -> Option<Own> {
    let user = once(reach, &["id", "-un"]).await.ok()?;
    let user = format!("user={}", user.trim());
    let fields = "format=qos,defaultqos";
    let list = ["sacctmgr", "--noheader", "--parsable2", "show", "associations", "where", &user, fields];
    let answer = once(reach, &list).await.ok()?;
    let mut all = BTreeSet::new();
    let mut defaults = BTreeSet::new();
    for line in answer.lines() {
        let (names, default) = line.split_once('|')?;
        all.extend(names.split(',').filter(|name| !name.is_empty()).map(str::to_owned));
        defaults.insert(default.trim().to_owned());
    }
    let default = defaults.pop_first().filter(|name| defaults.is_empty() && !name.is_empty());
    (!all.is_empty()).then_some(Own { all, default })
}

/// A value in the answer of `scontrol show config`.
pub(super) fn value<'a>(config: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = config.lines().filter_map(|line| line.split_once('='));
    pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}
