//! `pe-bench benchmark`: evaluation of a pretrained model on local benchmark files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Value, json};

use super::compute::ComputeArgs;
use super::out::say;
use super::trained;
use crate::benchmarks::{
    AskSettings, BenchmarkItem, ItemResult, MeanScore, PromptStyle, Scores, Shots, Summary, ask,
    check,
    read,
};

/// Maximum length of a prompt with its answer: larger positions are not exact in f32.
const LONGEST: usize = 1 << 24;

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
    /// Maximum number of prompt tokens; the middle of a longer prompt is dropped. Default: the trained context, with room for
    /// --tokens where the model writes.
    #[arg(long)]
    longest: Option<usize>,
    /// Maximum number of tokens of an answer.
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Maximum number of items per file; default: all.
    #[arg(long)]
    limit: Option<usize>,
    /// Form of multiple-choice prompts: `texts` compares the likelihoods of the options' texts, `letters` those of their
    /// letters after a list of the options.
    #[arg(long, value_enum, default_value_t)]
    options: PromptStyle,
    /// Number of examples before each item, the first ones of its subject in --examples.
    #[arg(long, default_value_t = 0, requires = "examples")]
    shots: usize,
    /// JSON Lines file with examples, in the format of the items.
    #[arg(long, requires = "shots")]
    examples: Option<PathBuf>,
    /// File for the answers: a JSON object for each item, with the text that the model wrote or the option that it chose.
    #[arg(long)]
    answers: Option<PathBuf>,
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
    anyhow::ensure!(arguments.limit != Some(0), "--limit is 0, expected at least 1");
    let most = longest.saturating_add(arguments.tokens);
    anyhow::ensure!(
        most <= LONGEST,
        "--longest and --tokens are {most} together, expected at most {LONGEST}"
    );
    let with_answer = pretrained.context.saturating_sub(arguments.tokens).max(2);
    let longest_prompt = arguments.longest.unwrap_or(with_answer);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut model = pretrained.decoder(&encoding, most, &mut rng)?;
    (model.engine, model.precision) = (compute.engine, compute.precision());
    let examples = arguments.examples.as_deref().map(read).transpose()?.unwrap_or_default();
    let settings = AskSettings {
        tokens: arguments.tokens,
        longest_prompt,
        longest,
        end: &pretrained.end,
        style: arguments.options,
        shots: Shots { items: &examples, count: arguments.shots },
    };
    let limit = |items: &[BenchmarkItem]| arguments.limit.unwrap_or(items.len()).min(items.len());
    let place = |path: &Path, index: usize| format!("{} item {}", path.display(), index + 1);
    // Before anything is computed.
    for (path, items) in &files {
        for (index, item) in items[..limit(items)].iter().enumerate() {
            check(pretrained.tokenizer(), item, settings).with_context(|| place(path, index))?;
        }
    }
    let mut answers = match &arguments.answers {
        None => None,
        Some(path) => {
            let file = File::create(path);
            Some(file.with_context(|| format!("cannot create {}", path.display()))?)
        }
    };
    for (path, items) in files {
        let items = &items[..limit(&items)];
        let mut summary = Summary::default();
        for (index, item) in items.iter().enumerate() {
            let result = ask(&model, id, pretrained.tokenizer(), item, settings, device)
                .with_context(|| place(path, index))?;
            summary.add(item.subject(), &result);
            if let Some(file) = &mut answers {
                let line = answer(item, &result, arguments.options);
                let line = json!({ "file": path, "item": index + 1, "answer": line });
                writeln!(file, "{line}").context("cannot write the answers")?;
            }
        }
        let mut line = json!({
            "file": path, "model": pretrained.name, "encoding": encoding.to_string(),
        });
        if arguments.shots > 0 {
            line["shots"] = json!(arguments.shots);
        }
        if let Some(scores) = summary.written() {
            line["written"] = scored(scores);
        }
        if let Some(scores) = summary.chosen() {
            line["chosen"] = scored(scores);
            let subjects = summary.by_subject();
            if !subjects.is_empty() {
                let subjects = subjects.into_iter().map(|(name, scores)| (name, scored(scores)));
                line["chosen"]["subjects"] = json!(subjects.collect::<BTreeMap<_, _>>());
            }
        }
        say(&line.to_string());
    }
    Ok(())
}

/// Scores as JSON: the mean under the name of each score, its standard error beside it.
fn scored((items, scores): (usize, Scores)) -> Value {
    let mut line = json!({ "items": items });
    for (name, MeanScore { mean, standard_error }) in scores {
        line[name] = json!(mean);
        line[format!("{name}_standard_error")] = json!(standard_error);
    }
    line
}

/// Answer to an item as JSON, with the expected one.
fn answer(item: &BenchmarkItem, result: &ItemResult, style: PromptStyle) -> Value {
    match (item, result) {
        (
            BenchmarkItem::Write { outputs, .. },
            ItemResult::Wrote { text, exact_match, f1, rouge },
        ) => {
            json!({
                "text": text, "references": outputs, "exact_match": exact_match, "f1": f1,
                "rouge": [rouge.one, rouge.two, rouge.longest],
            })
        }
        (
            BenchmarkItem::Choose { question, options, .. },
            ItemResult::Chose { right, choice, choice_per_byte, scores },
        ) => {
            let answers = style.answers(options);
            json!({
                "question": question, "options": answers, "log_likelihoods": scores,
                "chosen": answers[*choice], "chosen_per_byte": answers[*choice_per_byte],
                "right": answers[*right],
            })
        }
        // An item and its result are of the same kind.
        _ => Value::Null,
    }
}
