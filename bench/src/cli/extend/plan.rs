//! Cells of `pe-bench extend`, built from its arguments.

use std::path::Path;

use anyhow::Context as _;
use clap::ValueEnum as _;
use pe_zoo::Combination;
use serde_json::{Value, json};
use tasks::Task;

use super::{EvalTask, ExtendArgs, TunedWeights};
use crate::experiment::{Decay, OptimizerConfig};
use crate::experiment::{EvalConfig, TrainConfig};
use crate::extend::{
    EncodingVariant, ExtendCell, LongText, Method, Passkey, TuneConfig, Tuning, expression,
    variants,
};
use crate::lora::LoraConfig;
use crate::pretrained::Pretrained;

/// Variants, tasks and fine-tuning shared by the cells.
pub(super) struct Prepared {
    variants: Vec<EncodingVariant>,
    /// Tasks, each with its settings and the settings of its evaluation.
    asked: Vec<(Box<dyn Task>, Value, EvalConfig)>,
    tune: Option<(TuneConfig, LongText)>,
}

impl Prepared {
    pub(super) fn new(arguments: &ExtendArgs, pretrained: &Pretrained) -> anyhow::Result<Self> {
        let context = pretrained.context;
        let lens = match arguments.lens.as_slice() {
            [] => vec![context, 2 * context, 4 * context],
            lens => lens.to_vec(),
        };
        let variants = all_variants(arguments, pretrained, &lens)?;
        let text = || {
            let parts = read_parts(&arguments.data)?;
            let (tokens, vocabulary) = (pretrained.tokenizer(), pretrained.vocabulary);
            Ok::<_, anyhow::Error>(LongText::new(&parts, tokens, vocabulary, context)?)
        };
        let eval = |samples| EvalConfig {
            lens: lens.clone(),
            splits: None,
            samples,
            // One sequence at a time, because each has thousands of tokens.
            batch_size: 1,
            ..EvalConfig::default()
        };
        let mut asked = Vec::<(Box<dyn Task>, Value, EvalConfig)>::new();
        for kind in &arguments.tasks {
            asked.push(match kind {
                EvalTask::Text => {
                    let settings = json!({ "data": arguments.data });
                    (Box::new(text()?), settings, eval(arguments.samples))
                }
                EvalTask::Passkey => {
                    let depths = arguments.depths;
                    let vocabulary = pretrained.vocabulary;
                    let task = Passkey::new(pretrained.tokenizer(), vocabulary, depths)?;
                    let settings = json!({ "depths": depths, "language": "english" });
                    let seed = arguments.seed;
                    let eval = EvalConfig { seed, ..eval(depths * arguments.repeats) };
                    (Box::new(task), settings, eval)
                }
            });
        }
        for (task, _, eval) in &asked {
            for (field, value) in
                [("--samples or --repeats", eval.samples), ("--tasks", lens.len())]
            {
                anyhow::ensure!(value > 0, "{field} is 0, expected at least 1");
            }
            // A text that is too short for one of the lengths is reported in the record.
            for len in lens.iter().filter(|_| task.max_eval_samples(1).is_none()) {
                task.check_len(*len)?;
            }
        }
        let tune = match arguments.tune {
            None => None,
            Some(learns) => Some((tune_config(arguments, learns, context), text()?)),
        };
        Ok(Self { variants, asked, tune })
    }

    pub(super) fn cells(&self) -> Vec<ExtendCell<'_>> {
        let tune = self.tune.as_ref().map(|(config, text)| (config, text as &dyn Task));
        self.asked
            .iter()
            .flat_map(|(task, task_config, eval)| {
                self.variants.iter().map(move |variant| ExtendCell {
                    variant,
                    task: &**task,
                    task_config,
                    eval,
                    tune,
                })
            })
            .collect()
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
        variants(methods, rope, context, &factors)?
    } else {
        let own = pretrained.own_encoding();
        anyhow::ensure!(
            methods.iter().all(|method| *method == Method::AsTrained),
            "--methods: the model was trained under `{own}`, and only a rotation can be modified; give as-trained or \
             --encodings"
        );
        let variant = EncodingVariant { name: "as trained".to_owned(), encoding: own };
        methods.first().map(|_| variant).into_iter().collect()
    };
    for text in arguments.encodings.iter().flat_map(|list| Combination::split_list(list)) {
        all.push(expression(text)?);
    }
    anyhow::ensure!(
        !all.is_empty(),
        "no encoding to evaluate: the given methods need a length above the trained {context} in --lens, or --factors"
    );
    Ok(all)
}

fn tune_config(arguments: &ExtendArgs, learns: TunedWeights, context: usize) -> TuneConfig {
    let what = match learns {
        TunedWeights::All => Tuning::All {},
        TunedWeights::Lora => {
            Tuning::Lora(LoraConfig { rank: arguments.rank, alpha: arguments.alpha })
        }
        TunedWeights::Encoding => Tuning::Encoding {},
    };
    let train = TrainConfig {
        steps: arguments.steps,
        batch_size: arguments.batch,
        len: arguments.train_len.unwrap_or(context),
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
    TuneConfig { what, groups: arguments.groups, train }
}

/// Reads the parts of a corpus, or of the file or folder at a path.
pub(in crate::cli) fn read_parts(data: &str) -> anyhow::Result<tasks::data::Parts> {
    if tasks::corpus::CORPORA.iter().any(|corpus| corpus.id == data) {
        return Ok(tasks::corpus::read(data)?);
    }
    tasks::data::read(Path::new(data), None).with_context(|| format!("cannot read --data {data}"))
}
