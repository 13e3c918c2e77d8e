//! Generic events as named values: what plugins of the profiler write. Recipes interpret the names.

use nsys::export::ExportError;
use nsys::tables::{
    GENERIC_EVENT_DATA, GENERIC_EVENT_SOURCES, GENERIC_EVENT_TYPE_FIELDS, GENERIC_EVENT_TYPES,
    GENERIC_EVENTS, STRING_IDS, TableSpec,
};
use nsys::trace::Trace;
use std::collections::HashMap;
use std::sync::Arc;

/// The tables that recipes over generic events declare.
pub(super) const GENERIC_TABLES: &[&TableSpec] = &[
    &GENERIC_EVENTS,
    &GENERIC_EVENT_SOURCES,
    &GENERIC_EVENT_TYPES,
    &GENERIC_EVENT_TYPE_FIELDS,
    &GENERIC_EVENT_DATA,
    &STRING_IDS,
];

/// One field of one event.
pub(super) struct GenericValue {
    pub timestamp: i64,
    pub type_id: i64,
    pub event: Option<i64>,
    pub name: Arc<str>,
    /// `None` where it is not a number.
    pub value: Option<f64>,
}

/// From the table of data where an event has rows there, else from its own JSON; in no order.
pub(super) fn generic_values(trace: &Trace) -> Result<Vec<GenericValue>, ExportError> {
    let wanted = ["timestamp", "typeId", "genericEventId", "data"];
    let Some(rows) = trace.rows(&GENERIC_EVENTS, &wanted)? else { return Ok(Vec::new()) };
    let (times, types) = (rows.ints("timestamp")?, rows.ints("typeId")?);
    let (ids, texts) = (rows.maybe_ints("genericEventId")?, rows.texts("data")?);
    let (fields, mut names) = (fields(trace)?, field_names(trace)?);
    let mut words: HashMap<String, Arc<str>> = HashMap::new();
    let mut values = Vec::new();
    for row in 0..rows.len() {
        let event = ids.get(row);
        let of = |name: Arc<str>, value: Option<f64>| GenericValue {
            timestamp: times[row],
            type_id: types[row],
            event,
            name,
            value,
        };
        if let Some(known) = event.and_then(|event| fields.get(&event)) {
            for (index, value) in known {
                let name = names.entry((types[row], *index));
                let name = name.or_insert_with(|| format!("field {index}").into()).clone();
                values.push(of(name, Some(*value)));
            }
        } else if let Some(Ok(serde_json::Value::Object(data))) = texts.get(row).map(serde_json::from_str) {
            for (name, value) in data {
                let number = match &value {
                    serde_json::Value::String(text) => text.trim().parse().ok(),
                    value => value.as_f64(),
                };
                let name = words.entry(name).or_insert_with_key(|name| name.as_str().into()).clone();
                values.push(of(name, number.filter(|number: &f64| number.is_finite())));
            }
        }
    }
    Ok(values)
}

/// Of each event the numbers of its fields, each with the place of its field.
fn fields(trace: &Trace) -> Result<HashMap<i64, Vec<(i64, f64)>>, ExportError> {
    let mut fields: HashMap<i64, Vec<(i64, f64)>> = HashMap::new();
    let Some(data) = trace.export().table(&GENERIC_EVENT_DATA)? else { return Ok(fields) };
    let (events, indexes) = (data.ints("genericEventId")?, data.ints("fieldIdx")?);
    let whole = [data.maybe_ints("intVal")?, data.maybe_ints("uintVal")?];
    let parts = [data.maybe_reals("floatVal")?, data.maybe_reals("doubleVal")?];
    for row in 0..data.len() {
        let number = whole[0].get(row).map(|value| value as f64);
        // An unsigned number stands there with a sign.
        let number = number.or(whole[1].get(row).map(|value| value as u64 as f64));
        if let Some(value) = number.or(parts[0][row]).or(parts[1][row]) {
            fields.entry(events[row]).or_default().push((indexes[row], value));
        }
    }
    Ok(fields)
}

/// Of each type of event the source and the type, by name.
pub(super) fn sources(trace: &Trace) -> Result<HashMap<i64, String>, ExportError> {
    let strings = trace.strings()?;
    let mut of_source: HashMap<i64, String> = HashMap::new();
    if let Some(rows) = trace.export().table(&GENERIC_EVENT_SOURCES)? {
        for (id, name) in rows.ints("sourceId")?.iter().zip(rows.maybe_ints("nameId")?.iter()) {
            of_source.insert(*id, name.map(|name| strings.render(name).into_owned()).unwrap_or_default());
        }
    }
    let mut all = HashMap::new();
    if let Some(rows) = trace.export().table(&GENERIC_EVENT_TYPES)? {
        let (sources, names) = (rows.ints("sourceId")?, rows.maybe_ints("nameId")?);
        for (row, kind) in rows.ints("typeId")?.iter().enumerate() {
            let name = names.get(row).map(|name| strings.render(name).into_owned()).unwrap_or_default();
            let source = of_source.get(&sources[row]).map(String::as_str).unwrap_or_default();
            all.insert(*kind, format!("{source}/{name}"));
        }
    }
    Ok(all)
}

fn field_names(trace: &Trace) -> Result<HashMap<(i64, i64), Arc<str>>, ExportError> {
    let strings = trace.strings()?;
    let mut names = HashMap::new();
    if let Some(rows) = trace.export().table(&GENERIC_EVENT_TYPE_FIELDS)? {
        let keys = rows.ints("typeId")?.iter().zip(rows.ints("fieldIdx")?);
        for ((kind, index), name) in keys.zip(rows.ints("fieldNameId")?) {
            names.insert((*kind, *index), strings.render(*name).into());
        }
    }
    Ok(names)
}
