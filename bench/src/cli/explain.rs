//! `pe-bench explain`: the card of an encoding or a task, which is its file's documentation.

use pe_zoo::combination::settings_text;
use pe_zoo::settings::nearest;
use pe_zoo::zoo::PeConfig;
use pe_zoo::{Combination, EncodingConfig, PeError};

use super::out::say;

pub(super) fn explain(name: &str) -> anyhow::Result<()> {
    if let Some(meta) = tasks::ALL.iter().find(|meta| meta.id == name) {
        say(&tasks::card(name)?);
        say(&format!("\n## Facts\nranked by {}; lengths in {}", meta.headline.id(), meta.len_unit));
        let defaults = serde_json::to_string(&tasks::TaskConfig::from_id(name)?)?;
        say(&format!("defaults: {defaults}"));
        return Ok(());
    }
    let combination = Combination::parse(name).map_err(|error| with_tasks(name, error))?;
    let parts = combination.parts();
    if parts.len() > 1 {
        say(&format!("{combination}\n{}\n", combination.meta().summary));
    }
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            say("");
        }
        encoding(part)?;
    }
    Ok(())
}

/// A name that is no encoding may have been meant for a task.
fn with_tasks(name: &str, error: PeError) -> anyhow::Error {
    let near = nearest(name, tasks::ALL.iter().map(|meta| meta.id));
    match (error, near) {
        (PeError::UnknownId { nearest: None, .. }, Some(near)) => {
            anyhow::anyhow!("unknown encoding or task `{name}`, did you mean the task `{near}`?")
        }
        (error, _) => error.into(),
    }
}

fn encoding(part: &PeConfig) -> anyhow::Result<()> {
    let meta = part.meta();
    say(&card(pe_zoo::zoo::source(meta.id).unwrap_or_default()));
    let sites = meta.sites.iter().map(|site| site.label()).collect::<Vec<_>>().join(", ");
    let or =
        |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
    let claim =
        |holds: bool, yes: &str, no: &str| if holds { yes.to_owned() } else { no.to_owned() };
    let claims = [
        claim(meta.claims.content_dependent, "looks at tokens", "does not look at tokens"),
        claim(meta.claims.shift_invariant, "shift-invariant", "not shift-invariant"),
        claim(meta.claims.limited_length, "limited in length", "not limited in length"),
        claim(meta.claims.depends_on_length, "depends on the length", "the same at every length"),
    ];
    say("\n## Facts");
    say(&format!("acts on: {}", or(&sites, "nothing")));
    say(&format!("learned parameters: {}", meta.parameters));
    say(&format!("claims (checked by `pe-bench conform {}`): {}", meta.id, claims.join("; ")));
    say(&format!("read: {} {}", meta.paper, meta.url));
    let defaults = settings_text(&PeConfig::from_id(meta.id)?);
    say(&format!("defaults: {}", or(&defaults, "no settings")));
    let set = settings_text(part);
    if set != defaults {
        say(&format!("as written: {set}"));
    }
    Ok(())
}

/// The module documentation at the head of a file.
fn card(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::card;

    #[test]
    fn every_encoding_and_task_has_a_card() {
        for meta in pe_zoo::zoo::ALL {
            let card = card(pe_zoo::zoo::source(meta.id).unwrap());
            assert!(card.starts_with("# ") && card.contains("## References"), "{}", meta.id);
        }
        for meta in tasks::ALL {
            let card = tasks::card(meta.id).unwrap();
            assert!(card.starts_with("# "), "{}", meta.id);
        }
        assert_eq!(card("//! # A\n//!\n//! b\n\nuse c;"), "# A\n\nb");
    }
}
