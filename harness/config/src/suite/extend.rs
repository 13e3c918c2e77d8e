//! A suite that `extends` another: the same cases for another instance, with the bounds that differ there.

use super::{Assertion, Suite, form, read};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::toml_reader::file::stem;
use crate::toml_reader::quantity::quantity_of;
use crate::toml_reader::{self, Table, Value, line_of};
use base::suggest::nearest;
use recipes::catalogue::Catalogue;

/// The file and the text of a suite, by its name.
pub type Find<'a> = &'a dyn Fn(&str) -> Option<(String, String)>;

/// The suite that this one extends, if it does.
pub fn base_of(text: &str) -> Option<String> {
    extends(text)?
}

/// The value of `extends` where it is there; an inner `None` where it is no text.
fn extends(text: &str) -> Option<Option<String>> {
    let (document, _) = toml::de::DeTable::parse_recoverable(text);
    Some(document.get_ref().get("extends")?.get_ref().as_str().map(str::to_owned))
}

/// Reads a suite, with the one that it extends, if it does. Lines and file are those of the file that has the cases.
pub(super) fn suite(
    text: &str,
    file: &str,
    find: Find<'_>,
    catalogue: &Catalogue,
) -> Result<Suite, Diagnostics> {
    if let Some(why) = odd_name(stem(file)) {
        return Err(Diagnostic::in_file(file, why).into());
    }
    let Some(base) = extends(text) else { return read::suite(text, file, catalogue) };
    let refuse = |message: String| Err(Diagnostic::at(file, line_of(text, "extends"), 1, message).into());
    let Some(base) = base else {
        // The rest may be meant as cases or as changes.
        return refuse("`extends` must be the name of a suite, in quotes".to_owned());
    };
    let shown = base.escape_debug();
    let Some((base_file, base_text)) = find(&base) else {
        return refuse(format!("no suite named `{shown}` in `suites`"));
    };
    if base_of(&base_text).is_some() {
        return refuse(format!(
            "`extends` must name a suite with its own cases, not one that extends another: `{shown}`"
        ));
    }
    let base = read::suite(&base_text, &base_file, catalogue)?;
    toml_reader::read(text, file, |table| extended(table, &base, file, catalogue))
}

/// The name goes into the ids of runs, and with them into folders and the scripts of jobs, as the names of cases do.
fn odd_name(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(odd) = name.chars().find(|c| !allowed(*c)) {
        return Some(format!(
            "a suite name may contain letters, digits, `-`, `_` and `.`, not {odd:?}: {name:?}"
        ));
    }
    (!name.starts_with(|c: char| c.is_ascii_alphanumeric()) || name.len() > 100).then(|| {
        format!("a suite name must begin with a letter or digit and have at most 100 characters: `{name}`")
    })
}

fn extended(table: &Table<'_>, base: &Suite, file: &str, catalogue: &Catalogue) -> Option<Suite> {
    // Read in `base_of`; asked for here so that it is a known key.
    table.get("extends");
    let instance = table.need("instance").and_then(|value| value.non_empty_text());
    let about = table.need("about").and_then(|value| value.non_empty_text());
    let (probe, alike) = (read::read_probe(table), read::read_alike(table));
    let changes = table.get("change").and_then(|value| value.list()).unwrap_or_default();
    table.close(form::file);
    let mut suite = base.clone();
    for change in changes.iter().filter_map(Value::table) {
        apply(&change, &mut suite, catalogue);
    }
    // Of a fact that is named again, the bounds of this file hold.
    suite.probe.retain(|bound| !probe.iter().any(|own| own.fact == bound.fact));
    suite.probe.extend(probe);
    suite.alike = alike.unwrap_or(suite.alike);
    suite.name = stem(file).to_owned();
    suite.instance = instance?;
    suite.about = about?;
    Some(suite)
}

/// Gives the assertions of a metric in a case another bound.
fn apply(table: &Table<'_>, suite: &mut Suite, catalogue: &Catalogue) {
    let case_value = table.need("case");
    let metric_value = table.need("metric");
    let bounds = ["at_least", "at_most"].map(|key| table.get(key));
    table.close(form::change);
    let (Some(case_value), Some(metric_value)) = (case_value, metric_value) else { return };
    let (Some(case), Some(metric)) = (case_value.non_empty_text(), metric_value.non_empty_text()) else {
        return;
    };
    let names: Vec<String> = suite.cases.iter().map(|case| case.name.clone()).collect();
    let Some(found) = suite.cases.iter_mut().find(|found| found.name == case) else {
        let message = format!("no case named `{}` in the extended suite", case.escape_debug());
        match nearest(&case, names.iter().map(String::as_str)) {
            Some(near) => case_value.diagnostic_with(message, format!("did you mean `{near}`?")),
            None => case_value.diagnostic(message),
        }
        return;
    };
    let has_it = |assertion: &&mut Assertion| assertion.metric == metric;
    let mut assertions: Vec<&mut Assertion> = found.assertions.iter_mut().filter(has_it).collect();
    let Some((_, spec)) = catalogue.metric(&metric).filter(|_| !assertions.is_empty()) else {
        metric_value.diagnostic(format!("case `{case}` has no assertion on `{}`", metric.escape_debug()));
        return;
    };
    if bounds.iter().all(Option::is_none) {
        table.diagnostic_with("a change needs a bound", "add `at_least` or `at_most`");
    }
    let [at_least, at_most] =
        bounds.each_ref().map(|value| value.as_ref().and_then(|value| quantity_of(value, spec.unit)));
    for assertion in &mut assertions {
        let bound = &mut assertion.bound;
        let given = [(&bounds[0], at_least, &mut bound.at_least), (&bounds[1], at_most, &mut bound.at_most)];
        for (value, number, place) in given {
            let (Some(value), Some(number)) = (value, number) else { continue };
            if place.is_none() {
                value.diagnostic(format!("case `{case}` has no `{}` of `{metric}` to change", value.key()));
            }
            *place = Some(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema_tests::agreement;

    const BASE: &str = "instance = \"p5\"\nabout = \"a\"\n[[case]]\nname = \"nic-pairs\"\n\
        workload = { kind = \"nic-pairs\" }\nrecipes = [\"nic_flows\"]\n\
        [[case.assert]]\nmetric = \"nic.rate\"\nper = \"nic\"\nat_least = \"11 GB/s\"\nwithin_peers = \"5 %\"\n\
        [probe]\nswap = { at_most = 0 }\ncpus = { equals = 192 }\n";

    fn read(text: &str) -> Result<Suite, String> {
        let find = |name: &str| match name {
            "base" => Some(("suites/base.toml".to_owned(), BASE.to_owned())),
            "chain" => Some(("suites/chain.toml".to_owned(), "extends = \"base\"".to_owned())),
            _ => None,
        };
        let read = suite(text, "suites/other.toml", &find, &Catalogue::built_in());
        agreement("suite", text, &read);
        read.map_err(|diagnostics| diagnostics.to_string())
    }

    const HEAD: &str = "extends = \"base\"\ninstance = \"p5en\"\nabout = \"b\"\n";

    #[test]
    fn a_suite_is_the_same_for_another_instance_but_for_the_bounds_that_it_changes() {
        let base = read(BASE).expect("the base");
        let plain = read(HEAD).expect("a suite");
        assert_eq!((plain.name.as_str(), plain.instance.as_str()), ("other", "p5en"));
        assert_eq!(plain.cases, base.cases);
        let text = format!(
            "{HEAD}[[change]]\ncase = \"nic-pairs\"\nmetric = \"nic.rate\"\nat_least = \"22 GB/s\"\n"
        );
        let changed = read(&text).expect("a suite");
        let bound = changed.cases[0].assertions[0].bound;
        assert_eq!((bound.at_least, bound.within_peers), (Some(22.0), Some(0.05)));
    }

    #[test]
    fn a_change_without_a_target_is_refused() {
        let change = |rest: &str| read(&format!("{HEAD}[[change]]\n{rest}")).expect_err(rest);
        let rate = "metric = \"nic.rate\"\n";
        for (text, message) in [
            (format!("case = \"nic-pair\"\n{rate}at_least = \"1 GB/s\""), "did you mean `nic-pairs`?"),
            (
                "case = \"nic-pairs\"\nmetric = \"nccl.busbw\"\nat_least = \"1 GB/s\"".to_owned(),
                "has no assertion on `nccl.busbw`",
            ),
            (format!("case = \"nic-pairs\"\n{rate}"), "a change needs a bound"),
            (
                format!("case = \"nic-pairs\"\n{rate}at_most = \"9 GB/s\""),
                "no `at_most` of `nic.rate` to change",
            ),
            (format!("case = \"nic-pairs\"\n{rate}at_least = \"9 us\""), "wrong unit"),
            (format!("case = \"nic-pairs\"\n{rate}at_lest = \"9 GB/s\""), "did you mean `at_least`"),
        ] {
            let message_of = change(&text);
            assert!(message_of.contains(message), "{text}: {message_of}");
        }
        for (text, message) in [
            ("extends = \"none\"\ninstance = \"p5en\"\nabout = \"b\"\n", "no suite named `none`"),
            ("extends = \"chain\"\ninstance = \"p5en\"\nabout = \"b\"\n", "not one that extends another"),
            ("extends = \"base\"\nabout = \"b\"\n", "missing key: `instance`"),
            (
                "extends = \"base\"\ninstance = \"p5en\"\nabout = \"b\"\n[[case]]\nname = \"x\"\n",
                "unknown key: `case`",
            ),
        ] {
            let message_of = read(text).expect_err(text);
            assert!(message_of.contains(message), "{text}: {message_of}");
        }
    }

    #[test]
    fn bounds_of_a_fact_are_replaced_and_those_of_others_stay() {
        let head = "extends = \"base\"\ninstance = \"p5\"\nabout = \"b\"\n";
        let suite =
            read(&format!("{head}alike = [\"kernel\"]\n[probe]\ncpus = {{ equals = 96 }}\n")).expect("sound");
        let bounds: Vec<String> =
            suite.probe.iter().map(|bound| format!("{} {}", bound.fact, bound.bound)).collect();
        assert_eq!(bounds, ["swap at most 0", "cpus 96"]);
        assert_eq!(suite.alike, ["kernel"]);
        for (more, part) in [
            ("alike = [\"kernal\"]\n", "did you mean `kernel`?"),
            // One node's own, and of this moment.
            ("alike = [\"xid_faults\"]\n", "no fact that nodes can have alike: `xid_faults`"),
            ("[probe]\nkernal = { equals = \"6\" }\n", "unknown fact: `kernal`"),
        ] {
            let message = read(&format!("{head}{more}")).expect_err(more);
            assert!(message.contains(part), "{more}: {message}");
        }
    }
}
