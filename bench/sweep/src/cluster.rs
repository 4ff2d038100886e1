//! Batch scripts and manifests for clusters, as texts: shell words, Slurm and Kubernetes.

pub mod kubernetes;
pub mod shell;
pub mod slurm;
