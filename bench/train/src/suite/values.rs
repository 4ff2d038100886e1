//! Lists and paths in a suite's settings.

use std::fmt::Display;

use serde_json::{Map, Value};

use crate::experiment::check::repeated;

/// Values of an axis.
///
/// # Errors
/// Message, if there is no value or one is listed twice.
pub(super) fn list(values: &Value) -> Result<&[Value], String> {
    let values = match values {
        Value::Array(values) if !values.is_empty() => values.as_slice(),
        Value::Object(_) => {
            return Err("a map, expected a list; write paths in quotes, as \"task.variables\" = \
                        [1, 3]"
                .to_owned());
        }
        other => return Err(format!("{other}, expected a list of at least one value")),
    };
    distinct(values).map(|()| values)
}

/// Refuses a value that is listed twice.
///
/// # Errors
/// Message with the value.
pub(super) fn distinct<T: PartialEq + Display>(values: &[T]) -> Result<(), String> {
    repeated(values).map_or(Ok(()), |double| Err(format!("{double} is listed twice; keep one")))
}

/// Sets the value at a dotted path; missing maps on the way are created.
///
/// # Errors
/// Message, if a part of the path is empty or leads through a value that is not a map.
pub(super) fn set_at(
    fields: &mut Map<String, Value>,
    path: &str,
    value: Value,
) -> Result<(), String> {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    if first.is_empty() {
        return Err(format!("`{path}` has an empty part, expected names separated by `.`"));
    }
    let Some(rest) = rest else {
        fields.insert(first.to_owned(), value);
        return Ok(());
    };
    let inner = fields.entry(first.to_owned()).or_insert(Value::Null);
    if inner.is_null() {
        *inner = Value::Object(Map::new());
    }
    match inner {
        Value::Object(inner) => set_at(inner, rest, value),
        other => Err(format!("`{first}` is {other}, expected a map that can contain `{rest}`")),
    }
}
