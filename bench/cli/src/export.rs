//! `pe-bench export`: a trained model as files for PyTorch or transformers.

use std::path::PathBuf;

use clap::Args;
use records::WeightsAt;

use super::out::say;
use super::trained::by_key_or_path;
use llm::export::{Exported, export};

/// Arguments of `export`.
#[derive(Args)]
pub(super) struct ExportArgs {
    /// Key of a record or a prefix of it, or the path of kept weights (.safetensors).
    key: String,
    /// Folder to write to.
    dir: PathBuf,
    /// Results folder to search for records and weights; may be repeated. Default: every folder below `results` with
    /// records.
    #[arg(long, value_name = "DIR")]
    results: Vec<PathBuf>,
    /// Export the weights of the best validation (`run --keep-weights best`) instead of the last.
    #[arg(long)]
    best: bool,
}

pub(super) fn run(arguments: &ExportArgs) -> anyhow::Result<()> {
    let ExportArgs { key, dir, results, best } = arguments;
    let at = if *best { WeightsAt::Best } else { WeightsAt::Last };
    let kept = by_key_or_path(key, results, at)?;
    let shown = dir.display();
    match export(&kept, dir)? {
        Exported::Llama => say(&format!(
            "{shown}: a folder for transformers, `AutoModelForCausalLM.from_pretrained(\"{shown}\")` loads it"
        )),
        Exported::Module => say(&format!(
            "{shown}: weights with a PyTorch module, `pe_zoo_model.load(\"{shown}\")` loads them"
        )),
    }
    Ok(())
}
