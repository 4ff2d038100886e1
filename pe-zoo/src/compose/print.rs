//! Printer of expressions: the canonical text, and the joined cards of several encodings.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{CombinationCard, Inner, grammar, inner, is_over};
use crate::card::{Card, Composition};
use crate::registry::EncodingConfig;

/// Joins the cards of the parts.
pub(super) fn card(parts: &[EncodingConfig]) -> CombinationCard {
    let text = |of: fn(&Card) -> &'static str, between: &str| {
        let mut texts = parts.iter().map(|part| of(part.card())).collect::<Vec<_>>();
        texts.retain(|text| *text != "0");
        if texts.is_empty() { "0".to_owned() } else { texts.join(between) }
    };
    CombinationCard {
        id: joined(parts, "+", |part| part.card().id),
        label: joined(parts, " + ", |part| part.card().label),
        summary: text(|card| card.summary, " "),
        parameters: text(|card| card.parameters, " + "),
        paper: text(|card| card.paper, "; "),
        url: parts.first().map_or("", |part| part.card().url).to_owned(),
    }
}

/// Joins the parts by `name`, with the settings that differ from their defaults. Parts that have no
/// effect by themselves enclose the others in brackets.
fn joined(
    parts: &[EncodingConfig],
    between: &str,
    name: fn(&EncodingConfig) -> &'static str,
) -> String {
    let slash = if between == "+" { "/" } else { " / " };
    let text = |part: &EncodingConfig| match inner::layers(part) {
        Some(layers) => {
            let layers = layers.iter().map(|layer| joined(layer.parts(), between, name));
            let layers = layers.collect::<Vec<_>>().join(slash);
            let alone = parts.iter().filter(|part| !is_over(part)).count() == 1;
            if alone { layers } else { format!("({layers})") }
        }
        None => format!("{}{}", name(part), options(part)),
    };
    let over = parts.iter().filter(|part| is_over(part)).map(text);
    let beside = parts.iter().filter(|part| !is_over(part)).map(text).collect::<Vec<_>>();
    let beside = beside.join(between);
    let over = over.collect::<Vec<_>>();
    over.into_iter().rev().fold(beside, |inner, over| format!("{over}({inner})"))
}

/// Formats all settings in the syntax of an expression; empty if there are none.
pub(super) fn all_options(part: &EncodingConfig) -> String {
    let fields = part.fields();
    if fields.is_empty() { String::new() } else { table(fields) }
}

/// Formats the settings that differ from their defaults in the syntax of an expression; empty if
/// there are none.
fn options(part: &EncodingConfig) -> String {
    let mut own = part.fields().clone();
    if let Ok(default) = part.reread(Map::new()) {
        own.retain(|key, value| default.fields().get(key) != Some(value));
    }
    let brackets = bracketed(part, &mut own).unwrap_or_default();
    let options = if own.is_empty() { String::new() } else { table(&own) };
    options + &brackets
}

/// Removes the setting that is written in brackets from the options and returns it as brackets,
/// without the options at the defaults of its kind.
fn bracketed(part: &EncodingConfig, own: &mut Map<String, Value>) -> Option<String> {
    let (field, tag) = match part.composition() {
        Composition::Setting { field, tag } => (field, tag),
        Composition::Inner { field } => {
            let inner = Inner::read(part.registry(), own.remove(field)?).ok()?;
            return Some(format!("({})", inner.combination()));
        }
        Composition::Plain | Composition::Over { .. } | Composition::Layers { .. } => return None,
    };
    let Some(Value::Object(value)) = own.get(field) else { return None };
    let kind = value.get(tag)?.as_str()?.to_owned();
    let mut inner = value.clone();
    inner.remove(tag);
    let alone = json!({ field: { tag: &kind } });
    let known = match alone {
        Value::Object(alone) => part.reread(alone).ok(),
        _ => None,
    };
    if let Some(Value::Object(defaults)) =
        known.and_then(|known| known.fields().get(field).cloned())
    {
        inner.retain(|key, value| defaults.get(key) != Some(value));
    }
    own.remove(field);
    let options = if inner.is_empty() { String::new() } else { table(&inner) };
    Some(format!("({kind}{options})"))
}

fn table(fields: &Map<String, Value>) -> String {
    // Sorted explicitly: the order of the map type depends on a feature that any dependency may
    // enable.
    let sorted = fields.iter().collect::<BTreeMap<_, _>>();
    let fields = sorted.into_iter().map(|(key, value)| format!("{key}={}", written(value)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn written(value: &Value) -> String {
    match value {
        Value::String(text) if grammar::is_word(text) => text.clone(),
        Value::Object(fields) => table(fields),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}
