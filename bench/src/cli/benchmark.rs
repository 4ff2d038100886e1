//! `pe-bench benchmark`: evaluation of a pretrained model on local benchmark files.

use std::path::PathBuf;

use clap::Args;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;

use super::compute::ComputeArgs;
use super::out::say;
use super::trained;
use crate::benchmarks::{AskSettings, Summary, ask, read};

/// Arguments of `benchmark`.
#[derive(Args, Clone)]
pub(super) struct BenchmarkArgs {
    /// Folder of a model, a .gguf file, a name from `pe-bench pretrained list`, or kept weights of `pe-bench run`: the
    /// path of the .safetensors file or the key of a record.
    model: String,
    /// JSON Lines files with the fields of SCROLLS (`input`, `output`), QuALITY (`article`,
    /// `questions`), MMLU (`question`, `choices`, `answer`) or ARC (`question`, `choices`, `answerKey`).
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Encoding to use instead of the rotation that the model was trained with.
    #[arg(long)]
    encoding: Option<String>,
    /// Maximum number of prompt tokens; the middle of a longer prompt is dropped. Default: the trained context.
    #[arg(long)]
    longest: Option<usize>,
    /// Maximum number of tokens of an answer.
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Maximum number of items per file; default: all.
    #[arg(long)]
    limit: Option<usize>,
    #[command(flatten)]
    compute: ComputeArgs,
}

/// Evaluates the model on each file and prints one JSON object per file.
pub(super) fn benchmark(arguments: &BenchmarkArgs) -> anyhow::Result<()> {
    let compute = arguments.compute.open()?;
    let device = &compute.device;
    let files = arguments.files.iter().map(|path| Ok((path, read(path)?)));
    let files = files.collect::<anyhow::Result<Vec<_>>>()?;
    let pretrained = trained::pretrained(&arguments.model, device)?;
    let encoding = match &arguments.encoding {
        Some(text) => crate::encodings::parse(text)?,
        None => pretrained.own_encoding(),
    };
    let id = encoding.id();
    let longest = arguments.longest.unwrap_or(pretrained.context);
    anyhow::ensure!(longest > 1, "--longest is {longest}, expected at least 2");
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut model = pretrained.decoder(&encoding, longest + arguments.tokens, &mut rng)?;
    (model.engine, model.precision) = (compute.engine, compute.precision());
    let settings = AskSettings { tokens: arguments.tokens, longest, end: &pretrained.end };
    for (path, items) in files {
        let items = &items[..arguments.limit.unwrap_or(items.len()).min(items.len())];
        let mut summary = Summary::default();
        for item in items {
            let asked = ask(&model, id, pretrained.tokenizer(), item, settings, device)?;
            summary.add(&asked);
        }
        let (written, [exact_match, f1, rouge]) = summary.written;
        let (chosen, [accuracy, accuracy_per_byte]) = summary.chosen;
        let mut line = json!({
            "file": path, "model": pretrained.name, "encoding": encoding.to_string(),
        });
        if written > 0 {
            line["written"] = json!({
                "items": written, "exact_match": exact_match, "f1": f1, "rouge_geometric_mean": rouge,
            });
        }
        if chosen > 0 {
            line["chosen"] = json!({
                "items": chosen, "accuracy": accuracy, "accuracy_per_byte": accuracy_per_byte,
            });
        }
        say(&line.to_string());
    }
    Ok(())
}
