//! The kernels of a configuration as they are compiled, with arguments that nobody reads.

use burn_cubecl::cubecl::CubeKernel;
use burn_cubecl::cubecl::prelude::*;

use crate::kernels::gpu::mma::bands::{bands_kernel, table_kernel};
use crate::kernels::gpu::mma::config::{MmaConfig, UNITS};
use crate::kernels::gpu::mma::dkv::{ColumnGradientsLaunch, dkv_kernel};
use crate::kernels::gpu::mma::dq::{RowGradientsLaunch, dq_kernel};
use crate::kernels::gpu::mma::forward::forward_kernel;
use crate::kernels::gpu::mma::inputs::{MmaInputsLaunch, MmaSizesLaunch, UpstreamLaunch};
use crate::kernels::gpu::mma::pack::{StridedLaunch, pack_kernel, pack_upstream_kernel};
use crate::kernels::gpu::testing::fake_device::{argument as a, device, target};

fn count() -> CubeCount {
    CubeCount::Static(1, 1, 1)
}

fn dim() -> CubeDim {
    CubeDim::new_1d(UNITS as u32)
}

fn inputs() -> MmaInputsLaunch {
    MmaInputsLaunch::new(a(), a(), a(), a(), a(), a(), a())
}

fn place() -> MmaSizesLaunch {
    MmaSizesLaunch::new(1, 1, 1, 0, 1, 1.0)
}

fn strided() -> StridedLaunch {
    StridedLaunch::new(a(), 1, 1, 1, 1, 1)
}

pub(super) fn forward(config: MmaConfig) -> Box<dyn CubeKernel> {
    Box::new(forward_kernel::create_dummy_kernel(
        device(),
        target(),
        count(),
        dim(),
        inputs(),
        place(),
        a(),
        a(),
        config,
    ))
}

pub(super) fn dq(config: MmaConfig) -> Box<dyn CubeKernel> {
    Box::new(dq_kernel::create_dummy_kernel(
        device(),
        target(),
        count(),
        dim(),
        inputs(),
        place(),
        UpstreamLaunch::new(a(), a()),
        RowGradientsLaunch::new(a(), a(), a()),
        config,
    ))
}

pub(super) fn dkv(config: MmaConfig) -> Box<dyn CubeKernel> {
    Box::new(dkv_kernel::create_dummy_kernel(
        device(),
        target(),
        count(),
        dim(),
        inputs(),
        place(),
        UpstreamLaunch::new(a(), a()),
        ColumnGradientsLaunch::new(a(), a(), a()),
        config,
    ))
}

pub(super) fn pack(dim_in: usize, width: usize) -> Box<dyn CubeKernel> {
    Box::new(pack_kernel::create_dummy_kernel(
        device(),
        target(),
        count(),
        dim(),
        strided(),
        a(),
        dim_in,
        width,
    ))
}

pub(super) fn pack_upstream(dim_in: usize, width: usize) -> Box<dyn CubeKernel> {
    Box::new(pack_upstream_kernel::create_dummy_kernel(
        device(),
        target(),
        count(),
        dim(),
        strided(),
        strided(),
        a(),
        a(),
        a(),
        dim_in,
        width,
    ))
}

pub(super) fn bands(config: MmaConfig) -> Box<dyn CubeKernel> {
    Box::new(bands_kernel::create_dummy_kernel(
        device(),
        target(),
        count(),
        dim(),
        inputs(),
        place(),
        UpstreamLaunch::new(a(), a()),
        a(),
        config,
    ))
}

pub(super) fn table() -> Box<dyn CubeKernel> {
    Box::new(table_kernel::create_dummy_kernel(
        device(),
        target(),
        count(),
        dim(),
        a(),
        a(),
        1,
        1,
        1,
        1,
        0,
    ))
}
