//! `pe-bench samples`: samples of a task for other programs.

mod files;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value, json};
use tasks::{Sample, Task, TaskConfig};
use train::run::evaluate::chance;
use train::streams::{Stream, stream};

use super::out::{self, say};
use super::parsers::{MOST_SAMPLES, Suggested};
use files::SampleFormat;

/// Value of `--split` for training samples.
const TRAIN: &str = "train";
/// Largest vocabulary that `--describe` prints.
const SHOWN: usize = 4096;

/// Arguments of `samples`.
#[derive(Args)]
pub(super) struct SamplesArgs {
    /// Id of a task (`pe-bench list tasks`).
    #[arg(value_parser = Suggested::TASKS)]
    task: String,
    /// Setting of the task, such as variables=3; may be repeated. Other settings keep the defaults that `explain`
    /// prints.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Split to draw from: `train` for training samples, or a split of the task (`pe-bench explain TASK` lists the
    /// splits).
    #[arg(long, default_value = TRAIN)]
    split: String,
    /// Length of each sample, in the task's unit of length.
    #[arg(long)]
    len: usize,
    /// Seed of the samples: the seed of a run for training samples, the `eval.seed` of a suite for other splits.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of samples.
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// File to write, with the extension .npz, .parquet or .jsonl; default: JSON Lines on standard output.
    #[arg(long, conflicts_with = "describe")]
    out: Option<PathBuf>,
    /// Print a JSON object that describes the samples (vocabulary, metric, chance level) instead of the samples.
    #[arg(long)]
    describe: bool,
}

pub(super) fn run(arguments: &SamplesArgs) -> anyhow::Result<()> {
    let config = configured(&arguments.task, &arguments.set)?;
    let task = config.build()?;
    // Training samples on standard output are a stream, which its reader ends.
    let is_stream = arguments.split == TRAIN && arguments.out.is_none() && !arguments.describe;
    anyhow::ensure!(
        is_stream || arguments.count as u64 <= MOST_SAMPLES,
        "--count is {}, expected at most {MOST_SAMPLES}; only training samples on standard output have no limit",
        arguments.count
    );
    if arguments.describe {
        let about = description(&config, &*task, arguments)?;
        say(&about.to_string());
        return Ok(());
    }
    let Some(path) = &arguments.out else {
        print(&*task, draw(&*task, arguments)?);
        return Ok(());
    };
    let format = SampleFormat::of(path)?;
    let samples = draw(&*task, arguments)?.collect::<Vec<_>>();
    anyhow::ensure!(!samples.is_empty(), "--count is 0, expected at least 1");
    format
        .write(path, &*task, &samples)
        .with_context(|| format!("cannot write {}", path.display()))?;
    say(&format!("wrote {} to {}", out::counted(samples.len(), "sample"), path.display()));
    Ok(())
}

/// The task with settings in the form `KEY=VALUE`. A value that is not JSON is a text.
fn configured(id: &str, settings: &[String]) -> anyhow::Result<TaskConfig> {
    TaskConfig::from_id(id)?;
    let mut table = Map::from_iter([("kind".to_owned(), json!(id))]);
    for setting in settings {
        let (key, value) = setting
            .split_once('=')
            .with_context(|| format!("--set {setting}: expected KEY=VALUE, such as variables=3"))?;
        anyhow::ensure!(
            key != "kind",
            "--set {setting}: `kind` cannot be set; name the task as the first argument"
        );
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        let before = table.insert(key.to_owned(), value);
        anyhow::ensure!(before.is_none(), "--set gives `{key}` twice");
    }
    serde_json::from_value(Value::Object(table))
        .map_err(|error| anyhow::anyhow!(pe_zoo::settings::explain(&error.to_string())))
}

/// Draws the samples that a run would train on, or those of its evaluation.
fn draw<'a>(
    task: &'a dyn Task,
    arguments: &SamplesArgs,
) -> anyhow::Result<Box<dyn Iterator<Item = Sample> + 'a>> {
    let SamplesArgs { split, len, seed, count, .. } = arguments;
    task.check_len(*len)?;
    if split == TRAIN {
        let (len, mut rng) = (*len, stream(*seed, Stream::Data));
        return Ok(Box::new((0..*count).map(move |_| task.train_sample(len, &mut rng))));
    }
    Ok(Box::new(task.eval_set(split, *len, *count, *seed)?.into_iter()))
}

/// Prints samples until the reader leaves, who may want fewer than there are.
fn print(task: &dyn Task, samples: impl Iterator<Item = Sample>) {
    for sample in samples.take_while(|_| !out::is_closed()) {
        say(&json_of(task, &sample).to_string());
    }
}

/// One line of JSON Lines.
fn json_of(task: &dyn Task, sample: &Sample) -> Value {
    let of_sample = sample.slices.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
    let of_tokens = task.token_slices(sample);
    let of_tokens = of_tokens.into_iter().map(|(name, values)| (name.to_owned(), json!(values)));
    json!({
        "tokens": sample.tokens,
        "scored": sample.scored,
        "properties": of_sample.collect::<Map<_, _>>(),
        "token_properties": of_tokens.collect::<Map<_, _>>(),
    })
}

fn description(
    config: &TaskConfig,
    task: &dyn Task,
    arguments: &SamplesArgs,
) -> anyhow::Result<Value> {
    let samples = draw(task, arguments)?.collect::<Vec<_>>();
    let size = task.vocab_size();
    let token_ids = 0..u32::try_from(size)?;
    let vocabulary = || token_ids.map(|token| task.token_text(token)).collect::<Vec<_>>();
    let headline = task.meta().headline;
    Ok(json!({
        "task": config,
        "version": task.meta().version,
        "vocab_size": size,
        "vocabulary": (size <= SHOWN).then(vocabulary),
        "max_tokens": task.max_tokens(arguments.len),
        "splits": task.splits(),
        "metric": headline.id(),
        "chance": chance(headline, &samples),
        "samples": samples.len(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_others_refused() {
        let settings = |given: &[&str]| {
            let given = given.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            configured("counting", &given).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(settings(&[]).unwrap(), TaskConfig::from_id("counting").unwrap());
        let three = settings(&["variables=3"]).unwrap();
        assert_eq!(serde_json::to_value(three).unwrap()["variables"], 3);
        for (given, expected) in [
            (&["variables"][..], "expected KEY=VALUE"),
            (&["kind=copy"], "name the task as the first argument"),
            (&["variables=3", "variables=4"], "twice"),
            (&["variable=3"], "did you mean `variables`?"),
            (&["variables=many"], "many"),
        ] {
            let error = settings(given).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(configured("countin", &[]).unwrap_err().to_string().contains("counting"));
    }
}
