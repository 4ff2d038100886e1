//! Data parallel training: the micro-batches of a step on copies of the model, one for each device.
//!
//! Gradients are moved to the model's own device and added in the order of the micro-batches, and the optimizer steps
//! there; every step begins with new copies. The sums are those of one device, so that any number of devices gives the
//! same bits if they compute the same bits. The reductions of `burn::tensor::distributed` do not keep that order, and the
//! CPU's backend does not implement them.

use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;

use anyhow::{Context as _, Result};
use burn::module::Module;
use burn::tensor::Device;

use super::micro_batch::{MicroBatch, MicroBatchResult};
use super::threads;
use crate::backend;
use crate::experiment::TrainConfig;
use pe_zoo::model::Decoder;

/// Results that a device may be ahead of the sum, which takes them in order.
const AHEAD: usize = 1;

/// Devices that share the micro-batches of each step.
#[derive(Debug)]
pub struct Replicas(Vec<Replica>);

/// Device of one copy of the model, with the threads that compute on it.
#[derive(Debug)]
struct Replica {
    device: Device,
    pool: rayon::ThreadPool,
}

impl Replicas {
    /// The first `count` devices of this process on a backend, with `threads` CPU threads each.
    ///
    /// # Errors
    ///
    /// If the micro-batches cannot be divided among the devices, or a device or a thread is unavailable.
    pub fn new(backend: &str, count: usize, threads: usize, config: &TrainConfig) -> Result<Self> {
        config.check_data_parallel(count)?;
        let devices = backend::devices(backend, count)?;
        let replicas = devices.into_iter().map(|device| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.context("cannot start the threads of a device")?;
            Ok(Replica { device: config.autodiff(device), pool })
        });
        Ok(Self(replicas.collect::<Result<_>>()?))
    }

    /// Runs micro-batches on the devices in turn and calls `add` with their results in their order, with the gradients on
    /// the device `home`.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub(super) fn run(
        &self,
        model: &Decoder,
        micro_batches: Vec<MicroBatch>,
        home: &Device,
        add: &mut dyn FnMut(MicroBatchResult),
    ) -> Result<()> {
        let count = micro_batches.len();
        let mut shares = self.0.iter().map(|_| Vec::new()).collect::<Vec<_>>();
        for (index, micro_batch) in micro_batches.into_iter().enumerate() {
            shares[index % self.0.len()].push(micro_batch);
        }
        let home = home.clone().inner();
        std::thread::scope(|scope| {
            let mut working = Vec::with_capacity(shares.len());
            for (Replica { device, pool }, share) in self.0.iter().zip(shares) {
                let (sender, results) = sync_channel(AHEAD);
                // A graph of its own for each copy: Burn locks a graph during a backward pass.
                let copy = model.clone().fork(device);
                let compute = move || {
                    for micro_batch in share {
                        if sender.send(micro_batch.run(&copy, device)).is_err() {
                            return;
                        }
                    }
                };
                let run = move || pool.install(compute);
                working.push((threads::spawn(scope, "waits for a device", run)?, results));
            }
            for index in 0..count {
                // A device that panicked sends no more; its panic is propagated below.
                let Ok(mut result) = working[index % working.len()].1.recv() else { break };
                result.gradients = result.gradients.to_device(&home, model);
                add(result);
            }
            for (thread, results) in working {
                drop(results);
                if let Err(panic) = thread.join() {
                    resume_unwind(panic);
                }
            }
            Ok(())
        })
    }
}
