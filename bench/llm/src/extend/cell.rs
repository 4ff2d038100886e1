//! Cell of a length extension: one encoding on one task with pretrained weights.

use anyhow::{Result, bail};
use burn::tensor::Device;
use pe_zoo::attention::{AttentionKind, Engine};
use pe_zoo::card::ActsOn;
use pe_zoo::ops::MatmulPrecision;
use records::{RunRecord, WeightsAt};
use serde_json::{Value, json};
use tasks::Task;

use super::method::EncodingVariant;
use super::tune::{TuneConfig, Tuning};
use crate::pretrained::Pretrained;
use pe_zoo::model::{Decoder, ModelConfig};
use train::experiment::{EvalConfig, TrainingId};
use train::flops::CountedStep;
use train::run::evaluate::EvalRequest;
use train::run::{RecordBuilder, RunContext, RunPlan, Training};
use train::streams::{Stream, stream};

/// Settings shared by all cells of a run.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Pretrained model that the cell starts from.
    pub pretrained: &'a Pretrained,
    /// Suite, threads and jobs, for the records.
    pub run: &'a RunContext,
    /// Name and device of the backend, without autodiff.
    pub backend: (&'a str, &'a Device),
    /// Attention engine that is used.
    pub engine: Engine,
    /// Precision of matrix products.
    pub precision: MatmulPrecision,
    /// Seed of the initial values of the encoding and the adapters, and of the training windows.
    pub seed: u64,
}

/// One encoding on one task.
#[derive(Debug, Clone, Copy)]
pub struct ExtendCell<'a> {
    /// Position encoding of the cell, with its name.
    pub variant: &'a EncodingVariant,
    /// The task, in the model's own tokens.
    pub task: &'a dyn Task,
    /// Name of the task in tables and reports.
    pub task_name: &'a str,
    /// Settings of the task, for the record.
    pub task_config: &'a Value,
    /// Settings of the evaluation.
    pub eval: &'a EvalConfig,
    /// Tuning before the evaluation and its text; `None`: no tuning.
    pub tune: Option<(&'a TuneConfig, &'a dyn Task)>,
}

impl ExtendCell<'_> {
    /// Longest sequence in tokens. With a tuning it does not depend on the task, because tasks share its weights: windows of
    /// text have one token more than their length.
    pub(super) fn longest(&self, context: &Context<'_>) -> usize {
        let lens = self.eval.lens.iter();
        let longest = match self.tune {
            None => lens.map(|len| self.task.max_tokens(*len)).max().unwrap_or(0),
            Some((config, _)) => {
                let least = config.train.len.max(context.pretrained.context);
                lens.fold(least, |most, len| most.max(*len)).saturating_add(1)
            }
        };
        let longest = longest.max(context.pretrained.context);
        // Evaluations beyond a window are skipped.
        let most = context.pretrained.window.map(|window| window.saturating_add(1));
        most.map_or(longest, |most| longest.min(most))
    }

    fn dims(&self, context: &Context<'_>) -> pe_zoo::Dims {
        let Pretrained { model, context: trained, .. } = context.pretrained;
        model.dims(*trained, self.longest(context))
    }

    /// The encoding in the configuration, with the rate of its biases if it is tuned.
    fn identity(&self) -> Value {
        let encoding = &self.variant.encoding;
        self.tune.map_or_else(
            || encoding.identity(),
            |(config, _)| config.train.optimizer.identity_of(encoding),
        )
    }

    /// Complete configuration, of which the key is a hash.
    pub fn config(&self, context: &Context<'_>) -> Value {
        let Pretrained { model, rope, weights_sha256, .. } = context.pretrained;
        let mut config = json!({
            "encoding": self.identity(),
            "task": { self.task.meta().id: self.task_config },
            "task_version": self.task.meta().version,
            "task_data_sha256": self.task.data_sha256(),
            "model": model,
            "weights_sha256": weights_sha256,
            "trained_rotation": rope,
            "trained_context": context.pretrained.context,
            "tune": self.tune.map(|(config, text)| {
                json!({ "config": config, "data_sha256": text.data_sha256() })
            }),
            "eval": self.eval,
            "seed": context.seed,
            "backend": context.backend.0,
            "engine": context.engine,
        });
        if context.precision != MatmulPrecision::F32 {
            config["precision"] = json!(context.precision);
        }
        config
    }

    /// Identity of the tuning, equal for the cells that differ only in their task; `None` without a tuning. The lengths are
    /// those of the command, so that an encoding that is built for its longest sequence has the same weights.
    pub fn training(&self, context: &Context<'_>) -> Option<TrainingId> {
        let (config, _) = self.tune?;
        let mut of_tuning = self.config(context);
        if let Some(fields) = of_tuning.as_object_mut() {
            for of_evaluation in ["task", "task_version", "task_data_sha256", "eval"] {
                fields.remove(of_evaluation);
            }
        }
        let lens = self.eval.lens.iter().copied().chain([config.train.len]);
        let tokens = lens.fold(context.pretrained.context, usize::max);
        Some(TrainingId { key: records::store::cell_key(&of_tuning), tokens })
    }

    /// Hash of the complete configuration, 16 hexadecimal digits.
    pub fn key(&self, context: &Context<'_>) -> String {
        records::store::cell_key(&self.config(context))
    }

    /// Checks the configuration before anything is computed.
    ///
    /// # Errors
    /// If the encoding, the task or the tuning refuses a setting.
    pub fn check(&self, context: &Context<'_>) -> Result<()> {
        let dims = self.dims(context);
        self.variant.encoding.check(&dims)?;
        if let Some((config, text)) = self.tune {
            text.check_len(config.train.len)?;
            context.pretrained.check_window(config.train.len)?;
            config.train.check_sizes()?;
            config.train.optimizer.check()?;
            if let Some(groups) = config.groups {
                self.check_groups(&context.pretrained.model, groups, config.train.len)?;
            }
            match &config.what {
                Tuning::Lora(lora) => lora.check(context.pretrained.model.width)?,
                Tuning::Encoding {} if self.variant.encoding.param_count(&dims) == Some(0) => {
                    bail!(
                        "`{}` has no weights of its own, so --tune encoding would change nothing; use --tune all or \
                         --tune lora",
                        self.variant.name
                    );
                }
                Tuning::All {} | Tuning::Encoding {} => {}
            }
        }
        Ok(())
    }

    fn check_groups(&self, model: &ModelConfig, groups: usize, len: usize) -> Result<()> {
        let acts_on = &self.variant.encoding.properties()?.acts_on;
        let expected = if groups == 0 || !len.is_multiple_of(groups.saturating_mul(2)) {
            format!("a number whose double divides {len}, the number of tokens of a window")
        } else if model.attention != AttentionKind::Soft {
            "no groups, because the model has hard attention".to_owned()
        } else if acts_on.iter().any(|place| *place != ActsOn::QueryKey) {
            format!("no groups, because `{}` acts on more than queries and keys", self.variant.name)
        } else {
            return Ok(());
        };
        bail!("--groups is {groups}, expected {expected}; change it or leave it out")
    }

    /// Record of a cell that has not begun.
    pub fn unfinished_record(&self, context: &Context<'_>) -> RunRecord {
        let Pretrained { model, context: trained, name, .. } = context.pretrained;
        let label = match self.tune {
            Some((config, _)) => format!("{}, tuned ({})", self.variant.name, config.id()),
            None => self.variant.name.clone(),
        };
        let record = RecordBuilder {
            run: context.run,
            key: self.key(context),
            config: self.config(context),
            workload: format!("{name} {}", self.task_name),
            name: label.clone(),
            label,
            task: self.task,
            task_config: self.task_config.clone(),
            seed: context.seed,
            train_len: *trained,
            batch_size: self.tune.map_or(0, |(config, _)| config.train.batch_size),
            step: CountedStep {
                encoding: &self.variant.encoding,
                model,
                dims: self.dims(context),
                vocabulary: self.task.vocab_size(),
                sequences: 1,
                tokens: *trained,
            },
            backend: context.backend.0,
            engine: context.engine,
            precision: context.precision,
        };
        let mut record = record.build();
        record.versions.extend(context.pretrained.versions());
        record
    }

    /// Plan of the run: optional fine-tuning of the pretrained weights, then the evaluations.
    pub fn plan<'b>(&'b self, context: &'b Context<'b>) -> RunPlan<'b> {
        let split = self.task.splits().first().map_or("", |split| split.name);
        let request = |len: &usize| EvalRequest {
            split,
            len: *len,
            samples: self.eval.samples_at(self.task, *len),
            batch_size: self.eval.batch_size,
            seed: self.eval.seed,
            train_len: context.pretrained.context,
            slices: true,
        };
        let training = |(config, task): (&'b TuneConfig, &'b dyn Task)| Training {
            config: &config.train,
            dropout: 0.0,
            task,
        };
        RunPlan {
            record: self.unfinished_record(context),
            encoding_id: self.variant.encoding.id(),
            unstated: None,
            seed: context.seed,
            training: self.tune.map(training),
            kept: self.training(context).map(|training| (training, WeightsAt::Last)),
            task: self.task,
            requests: self.eval.lens.iter().map(request).collect(),
            gates: None,
            start: Box::new(move || self.start(context)),
            count: Box::new(|| None),
        }
    }

    /// Builds the pretrained model with this encoding; on an autodiff device and with frozen weights if it is tuned.
    fn start(&self, context: &Context<'_>) -> Result<(Decoder, Device)> {
        self.check(context)?;
        let (encoding, longest) = (&self.variant.encoding, self.longest(context));
        let mut rng = stream(context.seed, Stream::Encoding);
        let device = context.backend.1.clone();
        let device = match self.tune {
            Some((config, _)) => config.train.autodiff(device),
            None => device,
        };
        let gradients =
            self.tune.map(|_| device.gradient_checkpointing_strategy().unwrap_or_default());
        let mut model = context.pretrained.decoder_with(encoding, longest, &mut rng, gradients)?;
        (model.engine, model.precision) = (context.engine, context.precision);
        if let Some((config, _)) = self.tune {
            model.groups = config.groups;
            model = config.what.prepare(model, &mut stream(context.seed, Stream::Model));
        }
        Ok((model, device))
    }
}
