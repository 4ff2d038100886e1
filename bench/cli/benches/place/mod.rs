//! Where the benchmarks compute: the environment variables `PE_ZOO_BACKEND` (flex), `PE_ZOO_DEVICE` (0) and
//! `PE_ZOO_PRECISION` (f32), because the command line is criterion's.
#![allow(dead_code, reason = "each benchmark uses a part")]

use burn::tensor::Device;
use pe_zoo::ops::MatmulPrecision;
use train::backend;

fn variable(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

pub(crate) fn device() -> Device {
    let index = variable("PE_ZOO_DEVICE", "0");
    backend::select(&[index.parse().expect("PE_ZOO_DEVICE is an index")]);
    backend::device(&variable("PE_ZOO_BACKEND", "flex")).expect("PE_ZOO_BACKEND names a backend")
}

pub(crate) fn precision() -> MatmulPrecision {
    backend::named_precision(&variable("PE_ZOO_PRECISION", "f32")).expect("PE_ZOO_PRECISION")
}
