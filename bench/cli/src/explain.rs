//! `pe-bench explain`: documentation, properties and results of an encoding, and what a task or a suite is.
//!
//! The text is the module documentation of the source file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pe_zoo::attention::Support;
use pe_zoo::compose::settings_text;
use pe_zoo::settings::nearest;
use pe_zoo::{EncodingConfig, PeError};
use records::number::{joined, separator};
use serde_json::{Value, json};

use super::list::{core_seconds, core_time};
use super::out::say;
use super::prose::say_markdown;
use sweep::cluster::quoted;
use train::experiment::Experiment;
use train::suite::{self, Overrides};

/// Findings of the suite `zoo` about encodings, by name.
const RESULTS: &str = include_str!("../zoo.json");

pub(super) fn explain(name: &str, json: bool) -> anyhow::Result<()> {
    let Explanation { facts, text } = match suite::BUILT_IN.iter().find(|(suite, _)| *suite == name)
    {
        Some((_, text)) => of_suite(name, text)?,
        None if tasks::ALL.iter().any(|meta| meta.id == name) => of_task(name)?,
        None => of_combination(name)?,
    };
    if json {
        say(&format!("{facts:#}"));
    } else {
        say_markdown(&text);
    }
    Ok(())
}

/// Explanation of a name, as JSON and as Markdown.
struct Explanation {
    facts: Value,
    text: String,
}

fn of_task(name: &str) -> anyhow::Result<Explanation> {
    let config = tasks::TaskConfig::from_id(name)?;
    let (meta, text) = (config.meta(), tasks::card(name)?);
    // Those of a text are its parts.
    let splits = if meta.takes_path { None } else { Some(config.build()?.splits()) };
    let facts = json!({
        "kind": "task",
        "id": meta.id,
        "label": meta.label,
        "version": meta.version,
        "summary": meta.summary,
        "source": meta.source,
        "ranked_by": meta.headline.id(),
        "len_unit": meta.len_unit,
        "splits": splits,
        "defaults": config,
        "text": text,
    });
    let ranked =
        format!("encodings are ranked by {}; lengths are in {}", meta.headline.id(), meta.len_unit);
    let splits = splits.unwrap_or_default().iter();
    let splits = splits.map(|split| format!("split {}: {}", split.name, split.about));
    let defaults = format!("defaults: `{}`", spaced(&serde_json::to_string(&config)?));
    let list = std::iter::once(ranked).chain(splits).chain([defaults]).collect::<Vec<_>>();
    let text = format!("{text}\n\n## Facts\n- {}", list.join("\n- "));
    Ok(Explanation { facts, text })
}

fn of_suite(name: &str, text: &str) -> anyhow::Result<Explanation> {
    let mut suite = suite::parse(name, text, &Overrides::default())?;
    let first = suite.cells.len();
    let fresh = suite.following().cloned().collect::<Vec<_>>();
    let (of_fresh_seeds, follow) = match fresh.len() {
        0 => (None, String::new()),
        count => (Some(count), format!(", then {count} with fresh seeds")),
    };
    suite.cells.extend(fresh);
    let distinct = |of: fn(&Experiment) -> &String| {
        let mut names = suite.cells.iter().map(of).collect::<Vec<_>>();
        names.dedup();
        names.sort();
        names.dedup();
        names
    };
    let (workloads, encodings) = (distinct(|cell| &cell.workload), distinct(|cell| &cell.name));
    let listed = |names: &[&String]| joined(names, separator(names));
    let text = format!(
        "# {}\n\n{}\n\n## Facts\n- cells: {first}{follow}\n- training on one core: {}\n- workloads: {}\n- encodings: \
         {}\n\n`pe-bench run {name}` runs the suite. With `--dry-run`, the command only prints the estimated time.",
        suite.title,
        suite.about,
        core_time(core_seconds(&suite)),
        listed(&workloads),
        listed(&encodings)
    );
    let facts = json!({
        "kind": "suite",
        "id": name,
        "title": suite.title,
        "about": suite.about,
        "cells": suite.cells.len(),
        "of_fresh_seeds": of_fresh_seeds,
        "core_time_seconds": core_seconds(&suite),
        "workloads": workloads,
        "encodings": encodings,
    });
    Ok(Explanation { facts, text })
}

fn of_combination(name: &str) -> anyhow::Result<Explanation> {
    let combination = train::encodings::parse(name).map_err(|error| unknown_name(name, error))?;
    let parts = combination.parts();
    let mut all: BTreeMap<String, Vec<String>> = serde_json::from_str(RESULTS)?;
    let results = all.remove(&combination.to_string()).unwrap_or_default();
    let facts = json!({
        "kind": "encoding",
        "name": combination.to_string(),
        "summary": combination.card().summary,
        "parts": parts.iter().map(facts).collect::<Result<Vec<_>, _>>()?,
        "results": results,
    });
    let mut texts = parts.iter().map(encoding).collect::<Result<Vec<_>, _>>()?;
    if parts.len() > 1 {
        texts.insert(0, format!("# {combination}\n\n{}", combination.card().summary));
    }
    if !results.is_empty() {
        texts.push(format!(
            "## Results\n- {}\n\nThese results are from the suite `zoo`. `pe-bench compare {} rope` compares your own \
             records.",
            results.join("\n- "),
            quoted(&combination.to_string())
        ));
    }
    Ok(Explanation { facts, text: texts.join("\n\n") })
}

/// A text with spaces after its commas, at which lines may end.
fn spaced(text: &str) -> String {
    text.replace(',', ", ")
}

/// Error for an unknown name, with the nearest encoding, task or suite.
fn unknown_name(name: &str, error: PeError) -> anyhow::Error {
    let PeError::UnknownId { nearest: of_encodings, .. } = error else {
        return error.into();
    };
    let encodings = train::encodings::registry();
    let encodings = encodings.cards().map(|card| (card.id, ""));
    let tasks = tasks::ALL.iter().map(|meta| (meta.id, "the task "));
    let suites = suite::BUILT_IN.iter().map(|(name, _)| (*name, "the suite "));
    let known = encodings.chain(tasks).chain(suites).collect::<BTreeMap<_, _>>();
    // Labels lead to settings, as `YaRN` does.
    let of_label = of_encodings.filter(|near| !known.contains_key(near.as_str()));
    let near = match (of_label, nearest(name, known.keys().copied())) {
        (Some(near), _) => format!(" (did you mean `{near}`?)"),
        (None, Some(near)) => format!(" (did you mean {}`{near}`?)", known[&*near]),
        (None, None) => String::new(),
    };
    let listed = if near.is_empty() { "; `pe-bench list` prints all" } else { "" };
    anyhow::anyhow!("unknown encoding, task or suite `{name}`{near}{listed}")
}

/// Returns facts about an encoding as JSON.
fn facts(part: &EncodingConfig) -> anyhow::Result<Value> {
    let card = part.card();
    Ok(json!({
        "id": card.id,
        "label": card.label,
        "summary": card.summary,
        "learned_parameters": card.parameters,
        "paper": card.paper,
        "url": card.url,
        "properties": *pe_zoo::probe::properties(part)?,
        "defaults": settings_text(&train::encodings::registry().encoding(card.id)?),
        "settings": settings_text(part),
        "text": part.entry().source.map(self::card),
    }))
}

/// Documentation and facts of an encoding as Markdown.
fn encoding(part: &EncodingConfig) -> anyhow::Result<String> {
    if let Some(refused) = pe_zoo::probe::refusal(part) {
        return Err(refused.into());
    }
    let described = part.card();
    let about = part
        .entry()
        .source
        .map_or_else(|| format!("# {}\n\n{}", described.label, described.summary), self::card);
    let or =
        |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
    let properties = pe_zoo::probe::properties(part)?;
    let acts_on = properties.acts_on.iter().map(|part| part.label()).collect::<Vec<_>>().join(", ");
    let found = [
        if properties.content_dependent { "content-dependent" } else { "independent of content" },
        if properties.shift_invariant { "shift-invariant" } else { "not shift-invariant" },
        if properties.limited_length { "limited in length" } else { "unlimited in length" },
        if properties.depends_on_length {
            "dependent on the length of the sequence"
        } else {
            "independent of the length of the sequence"
        },
    ];
    let biases = pe_zoo::probe::biases(part)?.iter().cloned().collect::<Vec<_>>().join(", ");
    let support = pe_zoo::probe::support(part)?;
    let [cpu, gpu, bf16] = [support.cpu, support.gpu, support.tensor_cores].map(Support::id);
    let mut kernels = format!("{cpu} on the CPU, {gpu} on a GPU");
    if bf16 != gpu {
        let _ = write!(kernels, " ({bf16} in bf16 on NVIDIA GPUs)");
    }
    let defaults = settings_text(&train::encodings::registry().encoding(described.id)?);
    let set = settings_text(part);
    let has_symbols = described.parameters.contains(char::is_alphabetic);
    let symbols = if has_symbols { " (L layers of width C, H heads of D channels)" } else { "" };
    let as_written =
        if set == defaults { String::new() } else { format!("\n- as written: `{}`", spaced(&set)) };
    Ok(format!(
        "{about}\n\n## Facts\n- acts on: {}\n- learned parameters: {}{symbols}\n- biases and slopes, which \
         learn at `bias_rate`: {}\n- properties, found by probing: {}\n- engine for the logits: {kernels}\n- paper: {} \
         {}\n- defaults: `{}`{as_written}",
        or(&acts_on, "nothing"),
        described.parameters,
        or(&biases, "none"),
        found.join("; "),
        described.paper,
        described.url,
        spaced(&or(&defaults, "no settings"))
    ))
}

/// Module documentation (`//!` lines) at the top of a source file.
pub(super) fn card(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::card;

    #[test]
    fn every_encoding_and_task_has_a_card() {
        for entry in pe_zoo::Registry::builtin().entries() {
            let card = card(entry.source.unwrap());
            assert!(card.starts_with("# ") && card.contains("## References"), "{}", entry.card.id);
        }
        for meta in tasks::ALL {
            let card = tasks::card(meta.id).unwrap();
            assert!(card.starts_with("# "), "{}", meta.id);
        }
        assert_eq!(card("//! # A\n//!\n//! b\n\nuse c;"), "# A\n\nb");
    }
}
