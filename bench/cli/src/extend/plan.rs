//! Cells of `pe-bench extend`, built from its arguments.

use std::path::Path;

use anyhow::Context as _;
use clap::ValueEnum;
use pe_zoo::Combination;
use serde_json::{Value, json};
use tasks::Task;

use super::{EvalTask, ExtendArgs, TunedWeights, reads_text};
use crate::eval::each_once;
use crate::parsers::MOST_SAMPLES;
use llm::benchmarks::PromptStyle;
use llm::extend::{
    EncodingVariant, ExtendCell, InputOutput, LongText, Method, Passkey, TextWindows, TrainedSizes,
    TuneConfig, Tuning, expression, variants,
};
use llm::pretrained::Pretrained;
use pe_zoo::model::LoraConfig;
use train::experiment::{Decay, OptimizerConfig};
use train::experiment::{EvalConfig, TrainConfig};

/// Variants, tasks and fine-tuning shared by the cells.
pub(super) struct Prepared {
    variants: Vec<EncodingVariant>,
    evaluated: Vec<EvaluatedTask>,
    tunings: Vec<Option<TuneConfig>>,
    /// Text or items of the tunings.
    tuned_on: Option<Box<dyn Task>>,
    /// Items of the tunings with shifted groups.
    tuned_in_groups: Option<Box<dyn Task>>,
}

/// Task with its settings and the settings of its evaluation.
struct EvaluatedTask {
    task: Box<dyn Task>,
    /// Name of the task in tables and reports.
    name: String,
    config: Value,
    eval: EvalConfig,
}

/// Names of the values of an option.
fn names<T: ValueEnum>(values: &[T]) -> Vec<String> {
    let name = |value: &T| Some(value.to_possible_value()?.get_name().to_owned());
    values.iter().filter_map(name).collect()
}

/// Checks the lists of the command line, before the model is read.
pub(super) fn check_lists(arguments: &ExtendArgs) -> anyhow::Result<()> {
    each_once("--lens", &arguments.lens)?;
    each_once("--factors", &arguments.factors)?;
    each_once("--methods", &names(&arguments.methods))?;
    each_once("--tasks", &names(&arguments.tasks))?;
    each_once("--tune", &names(&arguments.tune))?;
    anyhow::ensure!(!arguments.lens.contains(&0), "--lens is 0, expected at least 1 token");
    Ok(())
}

impl Prepared {
    pub(super) fn new(arguments: &ExtendArgs, pretrained: &Pretrained) -> anyhow::Result<Self> {
        let context = pretrained.context;
        let lens = match arguments.lens.as_slice() {
            [] => vec![context, 2 * context, 4 * context],
            lens => lens.to_vec(),
        };
        let variants = all_variants(arguments, pretrained, &lens)?;
        let mut before = pretrained.tokenizer().around().before;
        // The report says which windows its perplexities are of.
        let windows = if before.is_empty() {
            String::new()
        } else {
            let tokens = pretrained.tokenizer().decode(&before)?;
            let how = if arguments.no_begin_token { "without" } else { "after" };
            format!(" {how} {tokens}")
        };
        if arguments.no_begin_token {
            anyhow::ensure!(
                reads_text(arguments),
                "--no-begin-token applies to windows of a text, but neither --tasks nor --tune-data reads a text; \
                 leave out --no-begin-token"
            );
            before.clear();
        }
        let text = |option: &str, data: &str| {
            let parts = read_parts(option, data)?;
            let windows = TextWindows { context, before: before.clone() };
            let (tokens, vocabulary) = (pretrained.tokenizer(), pretrained.vocabulary);
            Ok::<_, anyhow::Error>(LongText::new(&parts, tokens, vocabulary, windows)?)
        };
        let eval = |samples| EvalConfig {
            lens: lens.clone(),
            splits: None,
            samples,
            // One sequence at a time, because each has thousands of tokens.
            batch_size: 1,
            ..EvalConfig::default()
        };
        let mut evaluated = Vec::new();
        for kind in &arguments.tasks {
            evaluated.push(match kind {
                EvalTask::Text => {
                    let task = Box::new(text("--data", &arguments.data)?);
                    let mut config = json!({ "data": arguments.data });
                    if !before.is_empty() {
                        config["before_each_window"] = json!(before);
                    }
                    let name = format!("{}{windows}", task.meta().id);
                    EvaluatedTask { task, name, config, eval: eval(arguments.samples) }
                }
                EvalTask::Outputs => {
                    let items =
                        arguments.items.as_deref().context("--tasks outputs needs --items FILE")?;
                    let task = Box::new(InputOutput::new(&pairs(items)?, pretrained)?);
                    let all = task.max_eval_samples(lens[0]).unwrap_or(arguments.samples);
                    let (name, config) = (task.meta().id.to_owned(), json!({ "items": items }));
                    EvaluatedTask { task, name, config, eval: eval(all) }
                }
                EvalTask::Passkey => {
                    let depths = arguments.depths;
                    let tokens = pretrained.shared_tokenizer();
                    let task = Box::new(Passkey::new(tokens, pretrained.vocabulary, depths)?);
                    let samples = depths.checked_mul(arguments.repeats);
                    let samples = samples.filter(|count| *count as u64 <= MOST_SAMPLES);
                    let samples = samples.with_context(|| {
                        format!("--depths times --repeats is more than {MOST_SAMPLES}; choose smaller values")
                    })?;
                    let eval = EvalConfig { seed: arguments.seed, ..eval(samples) };
                    let config = json!({ "depths": depths, "language": "english" });
                    EvaluatedTask { name: task.meta().id.to_owned(), task, config, eval }
                }
            });
        }
        for EvaluatedTask { task, eval, .. } in &evaluated {
            anyhow::ensure!(eval.samples > 0, "--samples or --repeats is 0, expected at least 1");
            // A text that is too short for one of the lengths is reported in the record.
            for len in lens.iter().filter(|_| task.max_eval_samples(1).is_none()) {
                task.check_len(*len)?;
            }
        }
        let tunings = match arguments.tune.as_slice() {
            [] => vec![None],
            all => all.iter().map(|learns| tune_config(arguments, *learns, context)).collect(),
        };
        let is_tuned = tunings.iter().any(Option::is_some);
        let mut tuned_in_groups: Option<Box<dyn Task>> = None;
        let tuned_on: Option<Box<dyn Task>> = match &arguments.tune_data {
            _ if !is_tuned => None,
            None => Some(Box::new(text("--data", &arguments.data)?)),
            Some(path) if has_items(path) => {
                let items = InputOutput::new(&pairs(Path::new(path))?, pretrained)?;
                // All tunings have the same number of groups.
                if let Some(groups) = tunings.iter().flatten().find_map(|config| config.groups) {
                    let multiple = groups.saturating_mul(2).max(1);
                    tuned_in_groups = Some(Box::new(items.clone().in_multiples_of(multiple)));
                }
                Some(Box::new(items))
            }
            Some(other) => Some(Box::new(text("--tune-data", other)?)),
        };
        Ok(Self { variants, evaluated, tunings, tuned_on, tuned_in_groups })
    }

    pub(super) fn cells(&self) -> Vec<ExtendCell<'_>> {
        let tunings = self.tunings.iter().map(|config| {
            let config = config.as_ref()?;
            let in_groups = self.tuned_in_groups.as_deref().filter(|_| config.groups.is_some());
            Some((config, in_groups.or(self.tuned_on.as_deref())?))
        });
        let tunings = tunings.collect::<Vec<_>>();
        let mut cells = Vec::new();
        for EvaluatedTask { task, name, config, eval } in &self.evaluated {
            for variant in &self.variants {
                cells.extend(tunings.iter().map(|tune| ExtendCell {
                    variant,
                    task: &**task,
                    task_name: name,
                    task_config: config,
                    eval,
                    tune: *tune,
                }));
            }
        }
        cells
    }
}

fn all_variants(
    arguments: &ExtendArgs,
    pretrained: &Pretrained,
    lens: &[usize],
) -> anyhow::Result<Vec<EncodingVariant>> {
    let context = pretrained.context;
    let is_rotation = pretrained.rope.is_some();
    let methods = match (arguments.methods.as_slice(), &arguments.encodings) {
        ([], None) if is_rotation => Method::value_variants(),
        ([], None) => &[Method::AsTrained],
        (methods, _) => methods,
    };
    let mut factors = arguments.factors.clone();
    if factors.is_empty() {
        factors = lens.iter().map(|len| *len as f64 / context as f64).collect();
        factors.retain(|factor| *factor > 1.0);
        factors.sort_by(f64::total_cmp);
        factors.dedup();
    }
    let mut all = if let Some(rope) = &pretrained.rope {
        let head_dim = pretrained.model.dims(context, context).head_dim;
        variants(methods, rope, TrainedSizes { context, head_dim }, &factors)?
    } else {
        let own = pretrained.own_encoding();
        anyhow::ensure!(
            methods.iter().all(|method| *method == Method::AsTrained),
            "--methods: the model was trained with `{own}`, but methods modify only rotary encodings; choose --methods \
             as-trained, or encodings with --encodings"
        );
        let variant = EncodingVariant { name: "as trained".to_owned(), encoding: own };
        methods.first().map(|_| variant).into_iter().collect()
    };
    for text in arguments.encodings.iter().flat_map(|list| Combination::split_list(list)) {
        all.push(expression(text)?);
    }
    anyhow::ensure!(
        !all.is_empty(),
        "no encoding to evaluate: the given methods need --factors, or a length in --lens above the trained context \
         of {context} tokens"
    );
    Ok(all)
}

/// Groups of LongLoRA.
const LONG_LORA_GROUPS: usize = 4;

/// Settings of a tuning; `None` for none.
fn tune_config(arguments: &ExtendArgs, learns: TunedWeights, context: usize) -> Option<TuneConfig> {
    let lora = |embedding_and_norms: bool| {
        let ExtendArgs { rank, alpha, .. } = *arguments;
        Tuning::Lora(LoraConfig { rank, alpha, embedding_and_norms })
    };
    let (what, groups) = match learns {
        TunedWeights::None => return None,
        TunedWeights::All => (Tuning::All {}, arguments.groups),
        TunedWeights::Lora => (lora(false), arguments.groups),
        TunedWeights::LongLora => (lora(true), Some(arguments.groups.unwrap_or(LONG_LORA_GROUPS))),
        TunedWeights::Encoding => (Tuning::Encoding {}, arguments.groups),
    };
    let train = TrainConfig {
        steps: arguments.steps,
        batch_size: arguments.batch,
        len: arguments.train_len.unwrap_or(context),
        micro_batch_size: arguments.micro_batch,
        gradient_checkpointing: arguments.gradient_checkpointing,
        // As in TAPE's fine-tuning: a short warm-up, then a constant rate, without weight decay.
        optimizer: OptimizerConfig {
            learning_rate: arguments.learning_rate,
            warmup_steps: arguments.steps.div_ceil(10),
            decay: Decay::Constant,
            weight_decay: 0.0,
            ..OptimizerConfig::default()
        },
        ..TrainConfig::default()
    };
    Some(TuneConfig { what, groups, train })
}

/// Whether a file has items to tune on, and not a text.
pub(super) fn has_items(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|kind| kind == "jsonl")
}

/// Reads the items of a benchmark file as inputs with their outputs, one pair for each output.
fn pairs(path: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let items = llm::benchmarks::read(path)?;
    Ok(items.iter().flat_map(|item| PromptStyle::Texts.pairs(item)).collect())
}

/// Reads the parts of a corpus, or of the file or folder at a path; `option` gave it.
pub(crate) fn read_parts(option: &str, data: &str) -> anyhow::Result<tasks::data::Parts> {
    if tasks::corpus::CORPORA.iter().any(|corpus| corpus.id == data) {
        return Ok(tasks::corpus::read(data)?);
    }
    tasks::data::read(Path::new(data), None).with_context(|| format!("cannot read {option} {data}"))
}
