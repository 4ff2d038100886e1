//! Options of commands that compute: backend, device, attention engine and precision.

use anyhow::Result;
use burn::tensor::Device;
use clap::Args;
use pe_zoo::attention::Engine;
use pe_zoo::ops::MatmulPrecision;

use super::parsers::one_of;
use train::backend;
use train::experiment::Experiment;
use train::speed::{SpeedRequest, SpeedSize};

/// Backend of commands without a record that names one.
const DEFAULT: &str = "flex";

/// Backend and device.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeviceArgs {
    /// Backend to compute on (`pe-bench list backends`): flex, tch, tch-cuda, tch-mps, cuda or wgpu. Default: the
    /// backend of the record if the command reads a record, otherwise flex.
    #[arg(long)]
    backend: Option<String>,
    /// Index of the device to use among the backend's devices, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) device: usize,
}

/// Names of the attention engines.
const ENGINES: [(&str, Engine); 2] = [("reference", Engine::Reference), ("fused", Engine::Fused)];

impl DeviceArgs {
    /// Device of a backend.
    pub(crate) fn new(backend: &str, device: usize) -> Self {
        Self { backend: Some(backend.to_owned()), device }
    }

    /// Name of the backend.
    pub(crate) fn backend(&self) -> &str {
        self.backend.as_deref().unwrap_or(DEFAULT)
    }

    /// Makes this process compute on the device and opens it.
    ///
    /// # Errors
    /// If the backend or the device is unavailable.
    pub(crate) fn open(&self) -> Result<Device> {
        backend::select(&[self.device]);
        backend::device(self.backend())
    }
}

/// Backend, device, engine and precision.
#[derive(Args, Clone, Debug)]
pub(crate) struct ComputeArgs {
    #[command(flatten)]
    pub(crate) place: DeviceArgs,
    /// Attention engine: `reference` uses plain tensor operations on any backend; `fused` computes attention in blocks,
    /// without a full attention matrix, on flex, cuda and wgpu. Default: the backend's fastest engine.
    #[arg(long, value_parser = one_of(ENGINES))]
    engine: Option<Engine>,
    /// Precision of matrix products: f32, tf32 or bf16; default: the precision of the suite or record if the command
    /// reads a suite or record, otherwise f32.
    #[arg(long, value_parser = backend::named_precision)]
    pub(crate) precision: Option<MatmulPrecision>,
}

/// Opened device with the engine and the precision of the command.
#[derive(Debug, Clone)]
pub(crate) struct Compute {
    /// Name of the backend.
    pub(crate) backend: String,
    /// The device, without autodiff.
    pub(crate) device: Device,
    /// Attention engine that is used.
    pub(crate) engine: Engine,
    /// Precision that the command line names.
    pub(crate) precision: Option<MatmulPrecision>,
}

impl Compute {
    /// Precision of a command without a suite or a record.
    pub(crate) fn precision(&self) -> MatmulPrecision {
        self.precision.unwrap_or_default()
    }

    /// Request to measure an encoding.
    pub(crate) fn speed_request(&self, encoding: &str, size: SpeedSize) -> SpeedRequest {
        SpeedRequest {
            encoding: encoding.to_owned(),
            backend: self.backend.clone(),
            engine: self.engine,
            precision: self.precision(),
            size,
        }
    }
}

impl ComputeArgs {
    /// Makes this process compute on the device, opens it and checks engine and precision.
    ///
    /// # Errors
    /// If something is unavailable.
    pub(crate) fn open(&self) -> Result<Compute> {
        let device = self.place.open()?;
        let backend = self.place.backend().to_owned();
        let engine = backend::engine(self.engine, &backend)?;
        if let Some(precision) = self.precision {
            backend::precision(precision, &backend, &device)?;
        }
        Ok(Compute { backend, device, engine, precision: self.precision })
    }

    /// Engine that the backend will use on another machine, whose device cannot be opened here.
    ///
    /// # Errors
    /// If there is no such backend.
    pub(crate) fn engine_elsewhere(&self) -> Result<Engine> {
        let has_fused = backend::meta(self.place.backend())?.feature != "tch";
        let fastest = if has_fused { Engine::Fused } else { Engine::Reference };
        Ok(self.engine.unwrap_or(fastest))
    }

    /// Moves the experiment of a record to the backend, engine and precision that the command line names; the others
    /// stay those of the record.
    ///
    /// # Errors
    /// If something is unavailable.
    pub(crate) fn apply(&self, experiment: &mut Experiment) -> Result<()> {
        backend::select(&[self.place.device]);
        if let Some(backend) = &self.place.backend {
            experiment.backend.clone_from(backend);
        }
        let device = backend::device(&experiment.backend)?;
        if self.place.backend.is_some() || self.engine.is_some() {
            experiment.engine = backend::engine(self.engine, &experiment.backend)?;
        }
        if let Some(precision) = self.precision {
            experiment.train.precision = precision;
        }
        backend::precision(experiment.train.precision, &experiment.backend, &device)
    }
}
