//! `pe-bench benchmark`: evaluation of a pretrained model on local benchmark files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use records::Program;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::compute::ComputeArgs;
use super::out::say;
use super::parsers::number;
use super::trained;
use llm::benchmarks::{
    AskSettings, BenchmarkItem, ItemResult, MeanScore, PromptStyle, Scores, Shots, Summary, ask,
    prompt_len, read,
};
use llm::pretrained::Pretrained;
use train::host;

/// Maximum length of a prompt with its answer: larger positions are not exact in f32.
const LONGEST: u64 = 1 << 24;

/// Maximum number of tokens of a free answer by default.
const TOKENS: usize = 64;

/// Arguments of `benchmark`.
#[derive(Args, Clone)]
pub(super) struct BenchmarkArgs {
    /// Model: a folder, a .gguf file, a name from `pe-bench data list`, or weights that `pe-bench run` saved (the path
    /// of the .safetensors file, or the key of the record).
    model: String,
    /// JSON Lines files with the fields of SCROLLS (`input`, `output`), QuALITY (`article`,
    /// `questions`), MMLU (`question`, `choices`, `answer`) or ARC (`question`, `choices`, `answerKey`).
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Encoding to use; default: the encoding that the model was trained with.
    #[arg(long, alias = "encodings")]
    encoding: Option<String>,
    /// Maximum number of prompt tokens; the middle of a longer prompt is dropped. Default: the trained context, minus
    /// --tokens if the model writes answers.
    #[arg(long, value_parser = number(2..=LONGEST))]
    longest: Option<usize>,
    /// Maximum number of tokens of each answer that the model writes; default: 64.
    #[arg(long)]
    tokens: Option<usize>,
    /// Maximum number of items per file; default: all.
    #[arg(long, value_parser = number(1..=LONGEST))]
    limit: Option<usize>,
    /// Style of multiple-choice prompts: `texts` (the default) compares the likelihoods of the options' texts;
    /// `letters` lists the options in the prompt and compares the likelihoods of their letters, as in MMLU.
    #[arg(long, value_enum)]
    options: Option<PromptStyle>,
    /// Number of examples in the prompt before each item. They are the first examples of the item's subject in
    /// the file of --examples.
    #[arg(long, default_value_t = 0, requires = "examples")]
    shots: usize,
    /// JSON Lines file with examples, in the format of the items.
    #[arg(long, requires = "shots")]
    examples: Option<PathBuf>,
    /// JSON file to create with a record of this evaluation: model, encoding, settings, program, machine, all numbers
    /// and every answer.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    compute: ComputeArgs,
}

/// Refuses options about a kind of items that the files do not have.
fn refuse_without_effect(
    arguments: &BenchmarkArgs,
    items: &[&BenchmarkItem],
) -> anyhow::Result<()> {
    let has_free = items.iter().any(|item| is_free(item));
    anyhow::ensure!(
        has_free || arguments.tokens.is_none(),
        "--tokens has no effect: the model writes no answer to multiple-choice items; leave out --tokens"
    );
    let has_choices = items.iter().any(|item| !is_free(item));
    anyhow::ensure!(
        has_choices || arguments.options.is_none(),
        "--options has no effect: no item is multiple-choice; leave out --options"
    );
    Ok(())
}

/// Whether the model writes the answer to an item.
fn is_free(item: &BenchmarkItem) -> bool {
    matches!(item, BenchmarkItem::Write { .. })
}

/// Longest prompt of a free answer, prompt with an option, and sequence, in tokens.
/// Of files without free answers the first is the second.
fn lengths(
    arguments: &BenchmarkArgs,
    context: usize,
    has_free: bool,
) -> anyhow::Result<[usize; 3]> {
    let longest = arguments.longest.unwrap_or(context);
    if !has_free {
        return Ok([longest; 3]);
    }
    let tokens = arguments.tokens.unwrap_or(TOKENS);
    let with_answer = context.saturating_sub(tokens);
    anyhow::ensure!(
        with_answer > 1 || arguments.longest.is_some(),
        "--tokens is {tokens}, which leaves no room for a prompt in the model's context of {context} tokens; expected \
         at most {}; choose a smaller --tokens, or set the prompt length with --longest",
        context.saturating_sub(2)
    );
    let longest_prompt = arguments.longest.unwrap_or(with_answer);
    let most = longest.max(longest_prompt.saturating_add(tokens));
    anyhow::ensure!(
        most as u64 <= LONGEST,
        "the sum of --longest and --tokens is {most}, expected at most {LONGEST}; choose smaller values"
    );
    Ok([longest_prompt, longest, most])
}

/// An item, for messages.
fn place(path: &Path, index: usize) -> String {
    format!("{} item {}", path.display(), index + 1)
}

/// Checks that the items of a file can be asked, and complains if a prompt is longer than the sequences of the training.
fn check(
    path: &Path,
    items: &[BenchmarkItem],
    settings: AskSettings<'_>,
    pretrained: &Pretrained,
) -> anyhow::Result<()> {
    let mut most = 0;
    for (index, item) in items.iter().enumerate() {
        let tokens = prompt_len(pretrained.tokenizer(), item, settings);
        most = most.max(tokens.with_context(|| place(path, index))?);
    }
    trained::complain_beyond(&format!("{}: a prompt has", path.display()), most, pretrained);
    Ok(())
}

/// Evaluates the model on each file, prints one JSON object per file, and keeps a record if one is asked for.
pub(super) fn benchmark(arguments: &BenchmarkArgs) -> anyhow::Result<()> {
    if let Some(out) = arguments.out.as_deref() {
        check_new(out)?;
        let folder = out.parent().unwrap_or(Path::new(""));
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder of --out {}", out.display()))?;
    }
    let started_utc = host::now_utc();
    let compute = arguments.compute.open()?;
    let device = &compute.device;
    let files = arguments.files.iter().map(|path| {
        let mut items = read(path)?;
        items.truncate(arguments.limit.unwrap_or(items.len()));
        Ok((path, items, sha256(path)?))
    });
    let files = files.collect::<anyhow::Result<Vec<_>>>()?;
    let items = files.iter().flat_map(|(_, items, _)| items).collect::<Vec<_>>();
    refuse_without_effect(arguments, &items)?;
    let pretrained = trained::pretrained(&arguments.model, device)?;
    let encoding = match &arguments.encoding {
        Some(text) => train::encodings::parse(text)?,
        None => pretrained.own_encoding(),
    };
    let id = encoding.id();
    let has_free = items.iter().any(|item| is_free(item));
    let [longest_prompt, longest, most] = lengths(arguments, pretrained.context, has_free)?;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut model = pretrained.decoder(&encoding, most, &mut rng)?;
    (model.engine, model.precision) = (compute.engine, compute.precision());
    let examples = arguments.examples.as_deref().map(read).transpose()?.unwrap_or_default();
    let examples_sha256 = arguments.examples.as_deref().map(sha256).transpose()?;
    let settings = AskSettings {
        tokens: arguments.tokens.unwrap_or(TOKENS),
        longest_prompt,
        longest,
        end: &pretrained.end,
        style: arguments.options.unwrap_or_default(),
        shots: Shots { items: &examples, count: arguments.shots },
    };
    // Before anything is computed.
    for (path, items, _) in &files {
        check(path, items, settings, &pretrained)?;
    }
    let mut results = Vec::new();
    for (path, items, sha256) in files {
        let mut summary = Summary::default();
        let mut kept = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let result = ask(&model, id, pretrained.tokenizer(), item, settings, device)
                .with_context(|| place(path, index))?;
            summary.add(item.subject(), &result);
            kept.push(answer(item, &result, settings.style));
        }
        let mut line = json!({
            "file": path.display().to_string(), "model": pretrained.name,
            "encoding": encoding.to_string(),
        });
        if arguments.shots > 0 {
            line["shots"] = json!(arguments.shots);
        }
        add_scores(&mut line, &summary);
        say(&line.to_string());
        let mut result =
            json!({ "file": path.display().to_string(), "sha256": sha256, "answers": kept });
        add_scores(&mut result, &summary);
        results.push(result);
    }
    let Some(out) = arguments.out.as_deref() else { return Ok(()) };
    // Another process may have made it in the meantime.
    check_new(out)?;
    let (commit, dirty) = host::commit();
    let host = host::host(rayon::current_num_threads(), 1);
    let mut versions = host::versions();
    versions.extend(pretrained.versions());
    let program = Program { commit, dirty, versions, host, started_utc };
    let record = json!({
        "model": pretrained.name,
        "weights_sha256": pretrained.weights_sha256,
        "encoding": encoding.to_string(),
        "settings": {
            "encoding": encoding.identity(),
            "longest": longest,
            "longest_prompt": longest_prompt,
            "tokens": settings.tokens,
            "limit": arguments.limit,
            "options": settings.style,
            "shots": arguments.shots,
            "examples": arguments.examples.as_ref().map(|path| path.display().to_string()),
            "examples_sha256": examples_sha256,
            "before_each_prompt": pretrained.tokenizer().around().before,
            "backend": compute.backend,
            "engine": compute.engine,
            "precision": compute.precision(),
        },
        "program": program,
        "files": results,
    });
    records::store::write_atomically(out, format!("{record:#}\n").as_bytes())
        .with_context(|| format!("cannot write --out {}", out.display()))
}

/// Refuses a file that exists.
fn check_new(out: &Path) -> anyhow::Result<()> {
    let is_folder = out.file_name().is_none() || out.as_os_str().as_encoded_bytes().ends_with(b"/");
    anyhow::ensure!(!is_folder, "--out {}: expected the name of a new file", out.display());
    anyhow::ensure!(
        std::fs::symlink_metadata(out).is_err(),
        "--out {} exists, expected the name of a new file; choose another name, or move the file away",
        out.display()
    );
    Ok(())
}

/// SHA-256 of a file, as hexadecimal digits.
fn sha256(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(records::store::hex(&Sha256::digest(bytes)))
}

/// Adds the scores of a file to its line.
fn add_scores(line: &mut Value, summary: &Summary) {
    if let Some((count, scores)) = summary.written() {
        line["written"] = scored("items", count, scores);
    }
    if let Some((count, scores)) = summary.chosen() {
        line["chosen"] = scored("items", count, scores);
        for (name, groups) in [("subjects", summary.by_subject()), ("groups", summary.by_group())] {
            if !groups.is_empty() {
                let scores = groups
                    .into_iter()
                    .map(|(name, (count, scores))| (name, scored("items", count, scores)));
                line["chosen"][name] = json!(scores.collect::<BTreeMap<_, _>>());
            }
        }
        if let Some((count, scores)) = summary.over_subjects() {
            line["chosen"]["macro_average"] = scored("subjects", count, scores);
            line["chosen"]["subjects_in_no_group"] = json!(summary.outside_groups());
        }
    }
}

/// Scores as JSON: how many `counted` there are, the mean under the name of each score, its standard error beside it.
fn scored(counted: &str, count: usize, scores: Scores) -> Value {
    let mut line = json!({ counted: count });
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
            BenchmarkItem::Choose { subject, question, options, .. },
            ItemResult::Chose { right, choice, choice_per_byte, scores },
        ) => {
            let answers = style.answers(options);
            json!({
                "subject": subject, "question": question, "options": answers, "log_likelihoods": scores,
                "chosen": answers[*choice], "chosen_per_byte": answers[*choice_per_byte],
                "right": answers[*right],
            })
        }
        // An item and its result are of the same kind.
        _ => Value::Null,
    }
}
