//! `pe-bench benchmark`.

use std::path::PathBuf;

use clap::Args;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::json;

use super::out::say;
use crate::backend;
use crate::benchmarks::{Settings, Summary, ask, read};
use crate::pretrained::Pretrained;

/// Arguments of `benchmark`.
#[derive(Args, Clone)]
pub(super) struct BenchmarkArgs {
    /// A model's folder, a .gguf file, or a name (`pe-bench pretrained list`).
    model: String,
    /// Files of one JSON object a line, with the fields of SCROLLS (`input`, `output`), QuALITY (`article`,
    /// `questions`), MMLU (`question`, `choices`, `answer`) or ARC (`question`, `choices`, `answerKey`).
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// An encoding instead of the rotation that the model was trained under.
    #[arg(long)]
    encoding: Option<String>,
    /// Most tokens of a prompt; of longer ones the middle is left out. Default: the trained context.
    #[arg(long)]
    longest: Option<usize>,
    /// Most tokens of an answer.
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Most items of each file.
    #[arg(long)]
    limit: Option<usize>,
}

/// Prints one JSON line per file.
pub(super) fn benchmark(arguments: &BenchmarkArgs) -> anyhow::Result<()> {
    let device = backend::device("flex")?;
    let files = arguments.files.iter().map(|path| Ok((path, read(path)?)));
    let files = files.collect::<anyhow::Result<Vec<_>>>()?;
    let pretrained = Pretrained::open(&arguments.model, &device)?;
    let encoding = match &arguments.encoding {
        Some(text) => crate::encodings::parse(text)?,
        None => pretrained.own_encoding()?,
    };
    let id = encoding.id();
    let longest = arguments.longest.unwrap_or(pretrained.context);
    anyhow::ensure!(longest > 1, "--longest is {longest}, expected at least 2");
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let model = pretrained.decoder(&encoding, longest + arguments.tokens, &mut rng)?;
    let settings = Settings { tokens: arguments.tokens, longest, end: &pretrained.end };
    for (path, items) in files {
        let items = &items[..arguments.limit.unwrap_or(items.len()).min(items.len())];
        let mut summary = Summary::default();
        for item in items {
            let asked = ask(&model, id, pretrained.tokenizer(), item, settings, &device)?;
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
