//! Payloads as JSON: the names of the fields are its keys, and words may stand for numbers.

use super::{Field, Payload, Refusal, Value};
use serde_json::Value as Json;
use std::borrow::Cow;

/// Of several objects in a list, which several payloads of one range are, all fields.
pub(super) fn read(text: &str) -> Result<Payload, Refusal> {
    let mut payload = Payload::default();
    match serde_json::from_str(text).map_err(|_| Refusal::NoJson)? {
        Json::Object(fields) => take(&mut payload, &fields)?,
        Json::Array(all) => {
            for one in &all {
                take(&mut payload, one.as_object().ok_or(Refusal::NoJson)?)?;
            }
        }
        _ => return Err(Refusal::NoJson),
    }
    Ok(payload)
}

fn take(payload: &mut Payload, fields: &serde_json::Map<String, Json>) -> Result<(), Refusal> {
    for (name, value) in fields {
        let Some(field) = Field::named(name) else { continue };
        let value = match value {
            Json::Null => continue,
            Json::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Value::Number(number.into()),
                (None, Some(number)) => Value::Number(number.into()),
                (None, None) => Value::Other,
            },
            Json::String(word) => Value::Word(Cow::Borrowed(word)),
            Json::Bool(_) | Json::Array(_) | Json::Object(_) => Value::Other,
        };
        payload.put(field, value)?;
    }
    Ok(())
}
