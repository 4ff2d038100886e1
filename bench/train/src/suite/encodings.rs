//! Encodings of a suite, and their replacement by the command line.

use pe_zoo::Combination;
use pe_zoo::settings::nearest;
use serde_json::{Map, Value};

use super::values::distinct;

/// An encoding and its name within a suite.
pub type Named = (String, Combination);

/// Reads a list of encodings; `"*"` represents every encoding of the registry at its defaults.
pub(super) fn read_all(entries: &[Value]) -> Result<Vec<Named>, String> {
    let all = || crate::encodings::ids().into_iter().map(Value::from).collect::<Vec<_>>();
    let mut named = Vec::new();
    for entry in entries {
        let entries = if entry == "*" { all() } else { vec![entry.clone()] };
        for entry in entries {
            named.push(encoding(&entry)?);
        }
    }
    Ok(named)
}

/// Reads an encoding: an expression, or a map with the expression as `kind`, the settings of its only part, and
/// optionally a `name`.
///
/// # Errors
/// Message with the value and what was expected.
pub fn encoding(entry: &Value) -> Result<Named, String> {
    let (kind, name, fields) = match entry {
        Value::String(text) => (text.clone(), None, Map::new()),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            let mut take = |key: &str| match fields.remove(key) {
                None => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(other) => Err(format!("`{key}` is {other}, expected a string")),
            };
            let (kind, name) = (take("kind")?, take("name")?);
            let kind = kind.ok_or_else(|| {
                "a map without `kind`, expected for example { kind = \"rope\" }".to_owned()
            })?;
            (kind, name, fields)
        }
        other => return Err(format!("{other}, expected an expression or a map with `kind`")),
    };
    let config = crate::encodings::registry()
        .parse_with_settings(&kind, fields)
        .map_err(|error| error.to_string())?;
    match name {
        Some(name) if name.trim().is_empty() => {
            Err("`name` is empty; write the name under which the report shows this encoding, or leave out `name`"
                .to_owned())
        }
        name => Ok((name.unwrap_or_else(|| config.to_string()), config)),
    }
}

/// Replaces the encodings of each workload by those given on the command line.
pub(super) fn choose(selected: &mut [Vec<Named>], asked: &[String]) -> Result<(), String> {
    if asked.is_empty() {
        return Ok(());
    }
    let known = selected.iter().flatten().cloned().collect::<Vec<_>>();
    let has_name = |text: &str| known.iter().any(|(name, _)| name == text);
    let mut chosen = Vec::new();
    let names = known.iter().map(|(name, _)| name.as_str());
    for item in asked.iter().flat_map(|text| items(text, &names)) {
        if item.is_empty() {
            return Err(
                "an entry of the list is empty, expected names or expressions separated by single commas, such as \
                 rope,cope"
                    .to_owned(),
            );
        }
        let own = if has_name(item) { None } else { Some(expression(item, &known)?) };
        chosen.push((item, own));
    }
    let texts = chosen.iter().map(|(item, own)| match own {
        None => format!("`{item}`"),
        Some(own) => format!("`{own}`"),
    });
    distinct(&texts.collect::<Vec<_>>())?;
    for encodings in selected {
        *encodings = chosen
            .iter()
            .flat_map(|(text, expression)| match expression {
                None => encodings.iter().filter(|(name, _)| name == text).cloned().collect(),
                Some(asked) if known.iter().any(|(_, config)| config == asked) => {
                    encodings.iter().filter(|(_, config)| config == asked).cloned().collect()
                }
                Some(asked) => vec![(asked.to_string(), asked.clone())],
            })
            .collect();
    }
    Ok(())
}

/// Splits a list at the commas outside of brackets, quotes and names of the suite.
pub(super) fn items<'a, 'n>(
    text: &'a str,
    known: &(impl Iterator<Item = &'n str> + Clone),
) -> Vec<&'a str> {
    let mut items = Vec::new();
    let mut rest = text.trim();
    loop {
        let ends = |after: &str| matches!(after.trim_start().chars().next(), None | Some(','));
        let names = known.clone().filter(|name| rest.strip_prefix(name).is_some_and(ends));
        let own = names.map(str::len).max();
        let first = || Combination::split_list(rest).first().map_or(0, |first| first.len());
        let len = own.unwrap_or_else(|| if rest.starts_with(',') { 0 } else { first() });
        items.push(&rest[..len]);
        match rest[len..].trim_start().strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None => return items,
        }
    }
}

/// Parses an expression; an error also suggests the nearest name of the suite.
fn expression(text: &str, known: &[Named]) -> Result<Combination, String> {
    crate::encodings::parse(text).map_err(|error| {
        let said = error.to_string();
        match nearest(text, known.iter().map(|(name, _)| name.as_str())) {
            Some(near) if !said.contains("did you mean") => {
                format!("{said}; or did you mean the suite's `{near}`?")
            }
            _ => said,
        }
    })
}
