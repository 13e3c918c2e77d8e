//! `--set KEY=VALUE`: one value of all cases, or of one (`CASE.KEY=VALUE`), for one run. Recorded in the plan.

use base::suggest;
use config::suite::{self, Case, Setting, SettingValue, Suite};
use model::artefact::JOB_PROPERTIES;

/// Behind those of workloads.
const INTERVAL: Setting =
    Setting { key: "interval_s", about: "counters: seconds between two readings, at least 0.2" };

/// Every key that `--set` takes.
pub fn settings() -> impl Iterator<Item = Setting> {
    let of_jobs = JOB_PROPERTIES.iter().map(|property| Setting { key: property.key, about: property.about });
    of_jobs.chain(suite::settings().copied()).chain([INTERVAL])
}

/// Sets them in the cases, or reports why that is not possible.
pub fn apply_settings<'a>(
    suites: &mut [Suite],
    given: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<(), Vec<String>> {
    let mut diagnostics = Vec::new();
    for (key, value) in given {
        let (case, name) = match key.rsplit_once('.') {
            Some((case, name)) => (Some(case), name),
            None => (None, key.as_str()),
        };
        if !settings().any(|setting| setting.key == name) {
            let near = suggest::nearest(name, settings().map(|setting| setting.key));
            let keys = settings().map(|setting| setting.key).collect::<Vec<_>>().join("`, `");
            diagnostics.push(match near {
                Some(near) => format!("--set: unknown key `{key}`; did you mean `{near}`?"),
                None => format!("--set: unknown key `{key}`; known: `{keys}`"),
            });
            continue;
        }
        let names: Vec<String> =
            suites.iter().flat_map(|suite| suite.cases.iter().map(|case| case.name.clone())).collect();
        if let Some(case) = case
            && !names.iter().any(|name| name == case)
        {
            let near = suggest::nearest(case, names.iter().map(String::as_str));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            diagnostics.push(format!("--set: no case `{case}`{hint}"));
            continue;
        }
        let mut touched = false;
        for planned in suites.iter_mut().flat_map(|suite| &mut suite.cases) {
            if case.is_none_or(|wanted| wanted == planned.name) {
                match set(planned, name, value) {
                    Ok(applies) => touched |= applies,
                    Err(why) => {
                        diagnostics.push(format!("--set {key}={value}: {why}"));
                        break;
                    }
                }
            }
        }
        if !touched && diagnostics.is_empty() {
            diagnostics.push(format!("--set {key}: no selected case has this setting"));
        }
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

/// Whether the key means anything for the case.
fn set(case: &mut Case, key: &str, value: &str) -> Result<bool, String> {
    let whole = || match value.parse::<u64>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("`{value}` is not a whole number above zero")),
    };
    let small =
        || whole().and_then(|number| u32::try_from(number).map_err(|_| format!("`{value}` is too large")));
    let real = |least: f64| match value.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= least => Ok(number),
        _ => Err(format!("`{value}` is not a number of at least {least}")),
    };
    if let Some(property) = JOB_PROPERTIES.iter().find(|property| property.key == key) {
        (property.set)(&mut case.properties, whole()?);
        return Ok(true);
    }
    match key {
        "interval_s" => {
            case.counters.interval_s = real(0.2)?;
            case.counters.between = None;
        }
        _ => match case.workload.setting(key) {
            Some(SettingValue::Count(count)) => *count = small()?,
            Some(SettingValue::Number { value, least }) => *value = real(least)?,
            None => return Ok(false),
        },
    }
    Ok(true)
}
