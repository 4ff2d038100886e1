//! Writing expressions: the canonical text, and the facts of several encodings at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use super::{grammar, rules, stands_over};
use crate::EncodingConfig;
use crate::meta::{Brackets, Claims, PeMeta, Site};
use crate::zoo::PeConfig;

/// The facts of the parts together; the id is the canonical text.
///
/// They live as long as the program, as those of a single encoding do, and are made once for each
/// text: a program meets few of them.
pub(super) fn meta(parts: &[PeConfig]) -> &'static PeMeta {
    static KNOWN: Mutex<BTreeMap<String, &'static PeMeta>> = Mutex::new(BTreeMap::new());
    let id = joined(parts, "+", |part| part.meta().id);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(meta) = known.get(&id) {
        return meta;
    }
    let meta: &'static PeMeta = Box::leak(Box::new(derived(&id, parts)));
    known.insert(id, meta);
    meta
}

fn derived(id: &str, parts: &[PeConfig]) -> PeMeta {
    let metas = parts.iter().map(EncodingConfig::meta).collect::<Vec<_>>();
    let text = |of: fn(&PeMeta) -> &'static str, between: &str| -> &'static str {
        let mut texts = metas.iter().map(|meta| of(meta)).collect::<Vec<_>>();
        texts.retain(|text| *text != "0");
        let text = if texts.is_empty() { "0".to_owned() } else { texts.join(between) };
        Box::leak(text.into_boxed_str())
    };
    let mut sites = metas.iter().flat_map(|meta| meta.sites).copied().collect::<Vec<Site>>();
    sites.sort_unstable();
    sites.dedup();
    PeMeta {
        id: Box::leak(id.to_owned().into_boxed_str()),
        label: Box::leak(joined(parts, " + ", |part| part.meta().label).into_boxed_str()),
        summary: text(|meta| meta.summary, " "),
        sites: Box::leak(sites.into_boxed_slice()),
        claims: Claims {
            shift_invariant: rules::shift_invariant(parts),
            content_dependent: metas.iter().any(|meta| meta.claims.content_dependent),
            limited_length: metas.iter().any(|meta| meta.claims.limited_length),
            depends_on_length: metas.iter().any(|meta| meta.claims.depends_on_length),
        },
        parameters: text(|meta| meta.parameters, " + "),
        paper: text(|meta| meta.paper, "; "),
        url: metas.first().map_or("", |meta| meta.url),
    }
}

/// The parts by `name`, with the settings that are not at their defaults; those that stand over
/// others have them in brackets.
fn joined(parts: &[PeConfig], between: &str, name: fn(&PeConfig) -> &'static str) -> String {
    let text = |part: &PeConfig| format!("{}{}", name(part), options(part));
    let over = parts.iter().filter(|part| stands_over(part)).map(text);
    let beside = parts.iter().filter(|part| !stands_over(part)).map(text).collect::<Vec<_>>();
    let beside = beside.join(between);
    let over = over.collect::<Vec<_>>();
    over.into_iter().rev().fold(beside, |inner, over| format!("{over}({inner})"))
}

fn fields(part: &PeConfig) -> Map<String, Value> {
    match serde_json::to_value(part) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// All settings, as an expression has them; empty for none.
pub(super) fn all_options(part: &PeConfig) -> String {
    let fields = fields(part);
    if fields.is_empty() { String::new() } else { table(&fields) }
}

/// The settings that are not at their defaults, as an expression has them; empty for none.
fn options(part: &PeConfig) -> String {
    let defaults =
        PeConfig::from_id(part.meta().id).map(|default| fields(&default)).unwrap_or_default();
    let mut own = fields(part);
    own.retain(|key, value| defaults.get(key) != Some(value));
    let brackets = bracketed(part, &mut own).unwrap_or_default();
    let options = if own.is_empty() { String::new() } else { table(&own) };
    options + &brackets
}

/// Takes the setting that brackets stand for out of the options and writes it as brackets, without
/// what is at its default for its kind.
fn bracketed(part: &PeConfig, own: &mut Map<String, Value>) -> Option<String> {
    let Brackets::Setting { field, kind: tag } = part.brackets() else { return None };
    let Some(Value::Object(value)) = own.get(field) else { return None };
    let kind = value.get(tag)?.as_str()?.to_owned();
    let mut inner = value.clone();
    inner.remove(tag);
    let alone = json!({ field: { tag: &kind } });
    let known = match alone {
        Value::Object(alone) => PeConfig::from_fields(part.meta().id, alone).ok(),
        _ => None,
    };
    if let Some(Value::Object(defaults)) = known.and_then(|known| fields(&known).remove(field)) {
        inner.retain(|key, value| defaults.get(key) != Some(value));
    }
    own.remove(field);
    let options = if inner.is_empty() { String::new() } else { table(&inner) };
    Some(format!("({kind}{options})"))
}

fn table(fields: &Map<String, Value>) -> String {
    // Sorted here and not left to the map type, which a dependency may switch.
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
