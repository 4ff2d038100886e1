//! Settings of cells as columns.

use std::collections::BTreeMap;

use polars::prelude::*;
use rayon::prelude::*;
use serde_json::Value;

/// Number of cells that are parsed at a time, which bounds the memory of their settings.
const BATCH: usize = 4096;

/// Settings of one cell by path.
type FlatSettings = Vec<(String, Value)>;

/// Returns one column `config.<path>` for each setting of the cells, sorted by path: numbers, booleans or text; lists
/// and columns of several types as JSON.
pub(super) fn settings(cells: &DataFrame) -> PolarsResult<DataFrame> {
    let texts: Vec<Option<&str>> = cells.column("config")?.str()?.iter().collect();
    let mut columns: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (batch, texts) in texts.chunks(BATCH).enumerate() {
        let parsed: Vec<FlatSettings> = texts.par_iter().copied().map(flat).collect();
        for (row, flat) in (batch * BATCH..).zip(parsed) {
            for (path, value) in flat {
                let column = columns.entry(path).or_default();
                column.resize(row, Value::Null);
                column.push(value);
            }
        }
    }
    let column = |(path, mut values): (String, Vec<Value>)| {
        values.resize(cells.height(), Value::Null);
        typed(path, &values)
    };
    DataFrame::new(cells.height(), columns.into_iter().map(column).collect())
}

fn flat(text: Option<&str>) -> FlatSettings {
    let mut flat = Vec::new();
    let config = text.and_then(|text| serde_json::from_str(text).ok());
    flatten("config", config.unwrap_or_default(), &mut flat);
    flat
}

fn flatten(path: &str, value: Value, out: &mut FlatSettings) {
    match value {
        Value::Object(fields) => {
            fields
                .into_iter()
                .for_each(|(name, value)| flatten(&format!("{path}.{name}"), value, out));
        }
        value => out.push((path.to_owned(), value)),
    }
}

fn typed(name: String, values: &[Value]) -> Column {
    let all = |is: fn(&Value) -> bool| values.iter().all(|value| value.is_null() || is(value));
    let name = PlSmallStr::from(name);
    if all(Value::is_number) {
        Column::new(name, values.iter().map(Value::as_f64).collect::<Vec<_>>())
    } else if all(Value::is_boolean) {
        Column::new(name, values.iter().map(Value::as_bool).collect::<Vec<_>>())
    } else {
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        Column::new(name, values.iter().map(text).collect::<Vec<_>>())
    }
}
