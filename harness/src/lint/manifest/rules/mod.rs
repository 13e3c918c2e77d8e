//! The rules about manifests: what each is called, what it reports and what would go wrong. Add a rule by its row and its
//! line in `RULES`, and its check by its line in `CHECKS` where its file is new.

mod environment;
mod fields;
mod images;
mod launch;
mod metadata;
mod network;
mod profiler;
mod resources;
mod retries;
mod secrets;
mod volumes;

use super::objects::Manifests;
use super::yaml::Position;
use base::text::shorten;
use std::collections::{BTreeMap, BTreeSet};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The API server refuses the object, or it cannot do what was meant.
    Error,
    /// It is hardly meant.
    Warning,
    /// It may be meant.
    Note,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Stands behind each of its findings, in brackets.
    pub code: &'static str,
    /// Of its findings, unless one of them is softer.
    pub weight: Weight,
    /// What it reports.
    pub what: &'static str,
    /// What would go wrong.
    pub harm: &'static str,
}

/// Every rule, in the order of the manual.
pub const RULES: &[&Rule] = &[
    &fields::YAML,
    &fields::KIND,
    &fields::API_VERSION,
    &fields::FIELD,
    &fields::TYPE,
    &fields::VALUE,
    &fields::REQUIRED,
    &fields::SINCE,
    &fields::KEY_TWICE,
    &metadata::NAME,
    &metadata::LABEL,
    &resources::BLANK,
    &resources::RESOURCE_NAME,
    &resources::EFA_COUNT,
    &resources::LIMITS,
    &resources::HUGEPAGES,
    &resources::HUGEPAGES_ALONE,
    &volumes::SHM,
    &volumes::INFINIBAND,
    &volumes::VOLUME,
    &volumes::CLAIM,
    &network::SOCKET_INTERFACE,
    &network::HOST_DNS,
    &network::PROVIDER,
    &retries::RESTART,
    &retries::BACKOFF,
    &retries::DEADLINE,
    &retries::CLEAN_PODS,
    &environment::REFERENCE,
    &environment::PLACEHOLDER,
    &environment::TWICE,
    &secrets::SECRET,
    &images::TAG,
    &launch::RANKS,
    &launch::SLOTS,
    &launch::PROCESSES,
    &profiler::OLD_LABEL,
    &profiler::LABEL_LEVEL,
    &profiler::PATTERN,
    &profiler::WEBHOOKS,
    &profiler::RUNTIME,
];

type Check = fn(&Manifests, &mut Findings);

const CHECKS: &[Check] = &[
    fields::check,
    metadata::check,
    resources::check,
    volumes::check,
    network::check,
    retries::check,
    environment::check,
    secrets::check,
    images::check,
    launch::check,
    profiler::check,
];

pub(super) use fields::{YAML, corrected};

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) place: Position,
    pub(super) weight: Weight,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) advice: String,
}

const LONGEST: usize = 200;

/// More of one code in one file are left out.
const MOST_OF_A_CODE: usize = 50;

/// What the rules found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) all: BTreeSet<Finding>,
    /// By file and code.
    counts: BTreeMap<(usize, &'static str), usize>,
}

impl Findings {
    pub(super) fn add(
        &mut self,
        rule: &Rule,
        place: Position,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add_as(rule.weight, rule, place, message, advice);
    }

    /// A finding that may be meant, of a rule whose others are hardly.
    pub(super) fn note(
        &mut self,
        rule: &Rule,
        place: Position,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add_as(Weight::Note, rule, place, message, advice);
    }

    fn add_as(
        &mut self,
        weight: Weight,
        rule: &Rule,
        place: Position,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        if !self.has_room(rule, place) {
            return;
        }
        // Names and keys of a file may be as long as the file.
        let message = shorten(&message.into(), LONGEST);
        let message = format!("{message}: {} [{}]", rule.harm, rule.code);
        if self.all.insert(Finding { place, weight, code: rule.code, message, advice: advice.into() }) {
            *self.counts.entry((place.file, rule.code)).or_default() += 1;
        }
    }

    /// Whether a further finding of a rule in this file would be kept.
    pub(super) fn has_room(&self, rule: &Rule, place: Position) -> bool {
        self.counts.get(&(place.file, rule.code)).is_none_or(|count| *count < MOST_OF_A_CODE)
    }
}

/// What all rules find.
pub(super) fn check(manifests: &Manifests) -> Findings {
    let mut findings = Findings::default();
    CHECKS.iter().for_each(|check| check(manifests, &mut findings));
    findings
}
