//! `pe-bench explain`: documentation and properties of an encoding or a task.
//!
//! The text is the module documentation of the source file.

use pe_zoo::compose::settings_text;
use pe_zoo::settings::nearest;
use pe_zoo::{EncodingConfig, PeError};
use serde_json::{Value, json};

use super::out::say;

pub(super) fn explain(name: &str, json: bool) -> anyhow::Result<()> {
    if let Some(meta) = tasks::ALL.iter().find(|meta| meta.id == name) {
        let config = tasks::TaskConfig::from_id(name)?;
        // Those of a text are its parts.
        let splits = if meta.takes_path { None } else { Some(config.build()?.splits()) };
        if json {
            let object = json!({
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
                "text": tasks::card(name)?,
            });
            say(&format!("{object:#}"));
            return Ok(());
        }
        say(&tasks::card(name)?);
        say(&format!("\n## Facts\nranked by {}; lengths in {}", meta.headline.id(), meta.len_unit));
        for split in splits.unwrap_or_default() {
            say(&format!("split {}: {}", split.name, split.about));
        }
        say(&format!("defaults: {}", serde_json::to_string(&config)?));
        return Ok(());
    }
    let combination = train::encodings::parse(name).map_err(|error| with_tasks(name, error))?;
    let parts = combination.parts();
    if json {
        let object = json!({
            "kind": "encoding",
            "name": combination.to_string(),
            "summary": combination.card().summary,
            "parts": parts.iter().map(facts).collect::<Result<Vec<_>, _>>()?,
        });
        say(&format!("{object:#}"));
        return Ok(());
    }
    if parts.len() > 1 {
        say(&format!("{combination}\n{}\n", combination.card().summary));
    }
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            say("");
        }
        encoding(part)?;
    }
    Ok(())
}

/// Error for an unknown name, with the nearest encoding or task.
fn with_tasks(name: &str, error: PeError) -> anyhow::Error {
    let PeError::UnknownId { nearest: of_encodings, known, .. } = error else {
        return error.into();
    };
    let tasks = || tasks::ALL.iter().map(|meta| meta.id);
    let near = match (of_encodings, nearest(name, tasks())) {
        (Some(near), _) => format!(" (did you mean `{near}`?)"),
        (None, Some(near)) => format!(" (did you mean the task `{near}`?)"),
        (None, None) => String::new(),
    };
    let tasks = tasks().collect::<Vec<_>>().join(", ");
    anyhow::anyhow!("unknown encoding or task `{name}`{near}; encodings: {known}; tasks: {tasks}")
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

fn encoding(part: &EncodingConfig) -> anyhow::Result<()> {
    let described = part.card();
    match part.entry().source {
        Some(source) => say(&card(source)),
        None => say(&format!("# {}\n\n{}", described.label, described.summary)),
    }
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
    say("\n## Facts");
    say(&format!("acts on: {}", or(&acts_on, "nothing")));
    say(&format!("learned parameters: {}", described.parameters));
    let biases = pe_zoo::probe::biases(part)?.iter().cloned().collect::<Vec<_>>().join(", ");
    say(&format!("biases and slopes, which learn at `bias_rate`: {}", or(&biases, "none")));
    say(&format!("properties, by probing: {}", found.join("; ")));
    let support = pe_zoo::probe::support(part)?;
    let (cpu, gpu) = (support.cpu.id(), support.gpu.id());
    say(&format!("logits: {cpu} in the kernels of the CPU, {gpu} in the kernels of a GPU"));
    say(&format!("paper: {} {}", described.paper, described.url));
    let defaults = settings_text(&train::encodings::registry().encoding(described.id)?);
    say(&format!("defaults: {}", or(&defaults, "no settings")));
    let set = settings_text(part);
    if set != defaults {
        say(&format!("as written: {set}"));
    }
    match pe_zoo::probe::refusal(part) {
        Some(refused) => Err(refused.into()),
        None => Ok(()),
    }
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
