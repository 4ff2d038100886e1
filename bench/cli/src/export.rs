//! `pe-bench export`: a trained model as files for PyTorch or transformers.

use std::path::{Path, PathBuf};

use clap::Args;

use super::out::say;
use super::trained::{CellChoice, find};
use llm::export::{Exported, export};

/// Arguments of `export`.
#[derive(Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    choice: CellChoice,
    /// Folder to write to; default: results/export/KEY.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &ExportArgs) -> anyhow::Result<()> {
    let (mut choice, mut out) = (arguments.choice.clone(), arguments.out.clone());
    // An older form of the command: `export KEY DIR`.
    if out.is_none() && choice.cell.len() == 2 {
        out = choice.cell.pop().map(PathBuf::from);
    }
    let kept = find(&choice)?;
    let dir = out.unwrap_or_else(|| Path::new("results/export").join(&kept.record.key));
    let shown = dir.display();
    match export(&kept, &dir)? {
        Exported::Llama => say(&format!(
            "{shown}: a folder for transformers; `AutoModelForCausalLM.from_pretrained(\"{shown}\")` loads it"
        )),
        Exported::Torch => say(&format!(
            "{shown}: a folder for PyTorch; `pe_zoo.torch.load(\"{shown}\")` of the Python package `pe-zoo` loads it"
        )),
    }
    Ok(())
}
