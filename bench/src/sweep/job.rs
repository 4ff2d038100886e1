//! Experiments as workers receive them.

use pe_zoo::Combination;
use pe_zoo::attention::Engine;
use reports::GridPoint;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tasks::TaskConfig;

use crate::experiment::{Budget, EvalConfig, Experiment, TrainConfig};
use crate::model::ModelConfig;

/// Form of an [`Experiment`] with its encoding as text and without its budget, which is part of the request.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Experiment", deny_unknown_fields)]
pub(super) struct ExperimentJob {
    workload: String,
    name: String,
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    encoding: Combination,
    task: TaskConfig,
    model: ModelConfig,
    train: TrainConfig,
    eval: EvalConfig,
    grid: Option<GridPoint>,
    #[serde(skip)]
    budget: Budget,
    seed: u64,
    backend: String,
    engine: Engine,
}

fn as_text<S: Serializer>(encoding: &Combination, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(encoding)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Combination, D::Error> {
    crate::encodings::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}
