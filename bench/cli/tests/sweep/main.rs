//! Sweeps that survive: the real program, killed, starved, damaged and run in pairs.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod damage;
mod devices;
mod disks;
mod folders;
mod kills;
mod kubernetes;
mod limits;
mod merge;
mod place;
#[path = "../program/mod.rs"]
mod program;
mod shared;
mod shown;
mod slurm;
mod status;
#[path = "../../../llm/tests/tiny/mod.rs"]
mod tiny;
