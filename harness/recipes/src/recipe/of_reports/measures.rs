//! Summaries with several measures per group, of all reports together and of each. Medians and deviations are of all
//! values, whatever the order in which reports were read.

use super::columns::{ALL_STATS, OutputTable, RANK_STATS, output_table};
use super::together::{Extract, Share, Together};
use super::{Made, ReportExtract, encoding};
use crate::figures::{Gathered, Stats, Tally};
use crate::report::{Arguments, Group, GroupKey, Shows, measured_columns, sort_measured};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::trace::Trace;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

/// Of one report the rows in groups; nothing where it has none.
type GroupsOf = fn(&Trace, &Arguments) -> Result<Option<Vec<Group<Tally>>>, ExportError>;

pub(super) struct Measures {
    pub name: &'static str,
    pub title: &'static str,
    pub groups: GroupsOf,
    pub shows: &'static [Shows],
    /// Words that mean something within one report alone, such as threads: not used as keys over all reports.
    pub of_one_report: &'static [usize],
}

/// By the words that mean the same everywhere; others are `None`.
type All = BTreeMap<Vec<Option<GroupKey>>, Vec<Option<Gathered<Tally>>>>;

impl Measures {
    fn shared(&self, words: &[GroupKey]) -> Vec<Option<GroupKey>> {
        let word = |(at, word): (usize, &GroupKey)| (!self.of_one_report.contains(&at)).then(|| word.clone());
        words.iter().enumerate().map(word).collect()
    }

    /// Those that mean the same in all reports.
    fn shared_shows(&self) -> Vec<Shows> {
        let is_shared = |shows: &&Shows| match shows {
            Shows::Text(_, at) | Shows::Number(_, at) => !self.of_one_report.contains(at),
            Shows::Figure { .. } => true,
        };
        self.shows.iter().filter(is_shared).copied().collect()
    }

    fn result_table(
        &self,
        mut columns: Vec<Column>,
        groups: &[Group<Stats>],
        shows: &[Shows],
    ) -> ResultTable {
        // A sum that overflows a cell is left empty.
        let fit = |value| Ok::<_, Infallible>(i64::try_from(value).ok());
        columns.extend(match measured_columns(groups, shows, fit) {
            Ok(columns) => columns,
            Err(never) => match never {},
        });
        ResultTable::new(self.name, self.title, columns)
    }
}

impl Together for Measures {
    fn tables(&self) -> Vec<OutputTable> {
        let shared = self.shared_shows();
        let each = std::iter::once("Rank").chain(self.shows.iter().map(Shows::name));
        vec![
            output_table("all_stats", ALL_STATS, shared.iter().map(Shows::name)),
            output_table("rank_stats", RANK_STATS, each),
        ]
    }

    fn begin(&self) -> Extract {
        Box::new(All::new())
    }

    fn join(&self, all: &mut Extract, more: Extract) {
        let (Some(all), Ok(more)) = (all.downcast_mut::<All>(), more.downcast::<All>()) else { return };
        for (words, measures) in *more {
            add(all.entry(words).or_default(), measures);
        }
    }

    fn to_bytes(&self, extract: &Extract) -> Result<Vec<u8>, String> {
        encoding::extract_to_bytes::<Vec<Group<Stats>>>(extract)
    }

    fn read_bytes(&self, bytes: &[u8]) -> Result<Extract, String> {
        encoding::extract_from_bytes::<Vec<Group<Stats>>>(bytes)
    }

    fn all_to_bytes(&self, all: &Extract) -> Result<Vec<u8>, String> {
        encoding::extract_to_bytes::<All>(all)
    }

    fn all_from_bytes(&self, bytes: &[u8]) -> Result<Extract, String> {
        encoding::extract_from_bytes::<All>(bytes)
    }

    fn take(&self, trace: &Trace, arguments: &Arguments, all: &Mutex<Extract>) -> Share<Extract> {
        let Some(groups) = (self.groups)(trace, arguments)? else { return Ok(None) };
        let mut of_report: Vec<Group<Stats>> = Vec::new();
        let (mut rows, mut of_all) = (0, Vec::new());
        for mut group in groups {
            let figures = |gathered: &mut Option<Gathered<Tally>>| gathered.as_mut()?.figures();
            let measures: Vec<Option<Gathered<Stats>>> = group.measures.iter_mut().map(figures).collect();
            if let Some(Some(Gathered::All(stats))) = measures.first() {
                rows += stats.count;
            }
            of_all.push((self.shared(&group.words), group.measures));
            of_report.push(Group { words: group.words, measures });
        }
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = all.downcast_mut::<All>() {
            for (words, measures) in of_all {
                add(all.entry(words).or_default(), measures);
            }
        }
        sort_measured(&mut of_report);
        Ok(Some((Box::new(of_report), rows)))
    }

    fn make(&self, all: Extract, reports: Vec<ReportExtract<&Extract>>, _: &Arguments) -> Made {
        let all = all.downcast::<All>().map(|all| *all).unwrap_or_default();
        let together = all.into_iter().map(|(words, measures)| Group {
            words: words.into_iter().map(|word| word.unwrap_or(GroupKey::Number(0))).collect(),
            measures: measures.into_iter().map(|gathered| gathered?.figures()).collect(),
        });
        let mut together: Vec<Group<Stats>> = together.collect();
        sort_measured(&mut together);
        let shared = self.shared_shows();
        let (mut ranks, mut each) = (Vec::new(), Vec::new());
        for report in &reports {
            if let Some(groups) = report.extract.downcast_ref::<Vec<Group<Stats>>>() {
                ranks.extend(groups.iter().map(|_| report.rank));
                each.extend(groups.iter().cloned());
            }
        }
        let ranks = vec![Column::integers("Rank", Quantity::Plain, ranks)];
        let tables = vec![
            ("all_stats", self.result_table(Vec::new(), &together, &shared)),
            ("rank_stats", self.result_table(ranks, &each, self.shows)),
        ];
        Made { tables, ..Made::default() }
    }

    fn shows_empty_tables(&self) -> bool {
        true
    }
}

fn add(all: &mut Vec<Option<Gathered<Tally>>>, measures: Vec<Option<Gathered<Tally>>>) {
    all.resize_with(all.len().max(measures.len()), || None);
    for (all, more) in all.iter_mut().zip(measures) {
        match (all, more) {
            (Some(all), Some(more)) => all.add(more),
            (all @ None, more) => *all = more,
            (Some(_), None) => {}
        }
    }
}
