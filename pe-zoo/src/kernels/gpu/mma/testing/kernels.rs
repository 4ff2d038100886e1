//! The kernels of a configuration as they are compiled, with arguments that nobody reads.

use burn_cubecl::cubecl::CubeKernel;
use burn_cubecl::cubecl::prelude::*;

use crate::kernels::gpu::mma::bands::{bands_kernel, table_kernel};
use crate::kernels::gpu::mma::config::{MmaConfig, MmaPass, OfKeys, UNITS};
use crate::kernels::gpu::mma::dkv::{ColumnGradientsLaunch, dkv_kernel};
use crate::kernels::gpu::mma::dkv_rows::dkv_rows_kernel;
use crate::kernels::gpu::mma::dq::dq_kernel;
use crate::kernels::gpu::mma::forward::{ForwardOutputsLaunch, forward_kernel};
use crate::kernels::gpu::mma::inputs::{MmaInputsLaunch, MmaSizesLaunch, UpstreamLaunch};
use crate::kernels::gpu::mma::near::{near_gradients_kernel, near_kernel, relative_kernel};
use crate::kernels::gpu::mma::pack::{
    PackedRowsLaunch, StridedLaunch, pack_kernel, pack_upstream_kernel,
};
use crate::kernels::gpu::mma::product::ProductForm;
use crate::kernels::gpu::mma::product::exact::{ExactFactorLaunch, ExactForm, exact_kernel};
use crate::kernels::gpu::mma::product::kernel::{FactorLaunch, ProductSizesLaunch, product_kernel};
use crate::kernels::gpu::mma::product::round::{round_and_sum_rows, round_rows};
use crate::kernels::gpu::mma::product::warpgroup::{WARPGROUP_UNITS, warpgroup_kernel};
use crate::kernels::gpu::mma::reflected::{ReflectedGradientsLaunch, reflected_kernel};
use crate::kernels::gpu::mma::row_sums::RowGradientsLaunch;
use crate::kernels::gpu::testing::fake_device::{argument as a, device, target};

/// Makes a kernel for the fake device from its arguments.
macro_rules! kernel {
    ($kernel:ident $(::<$float:ty>)?, $($argument:expr),*) => {
        kernel!(UNITS; $kernel $(::<$float>)?, $($argument),*)
    };
    ($units:expr; $kernel:ident $(::<$float:ty>)?, $($argument:expr),*) => {
        Box::new($kernel::create_dummy_kernel$(::<$float>)?(
            device(),
            target(),
            CubeCount::Static(1, 1, 1),
            CubeDim::new_1d($units as u32),
            $($argument),*
        ))
    };
}

fn inputs() -> MmaInputsLaunch {
    MmaInputsLaunch::new(
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
        a(),
    )
}

fn place() -> MmaSizesLaunch {
    MmaSizesLaunch::new(1, 1, 1, 0, 1, 1.0, 1.0, 1.0)
}

fn upstream() -> UpstreamLaunch {
    UpstreamLaunch::new(a(), a(), a())
}

fn strided() -> StridedLaunch {
    StridedLaunch::new(a(), 1, 1, 1, 1, 1)
}

pub(super) fn forward(config: MmaConfig) -> Box<dyn CubeKernel> {
    let out = ForwardOutputsLaunch::new(a(), a(), a());
    kernel!(forward_kernel, inputs(), place(), out, config.of(MmaPass::Forward))
}

pub(super) fn dq(config: MmaConfig) -> Box<dyn CubeKernel> {
    let out = RowGradientsLaunch::new(a(), a(), a(), a(), a(), a(), a());
    kernel!(dq_kernel, inputs(), place(), upstream(), out, config.of(MmaPass::Rows))
}

pub(super) fn dkv(config: MmaConfig) -> Box<dyn CubeKernel> {
    let out = ColumnGradientsLaunch::new(a(), a(), a(), a());
    kernel!(dkv_kernel, inputs(), place(), upstream(), out, config.of(MmaPass::Keys))
}

pub(super) fn dkv_rows(of: OfKeys, config: MmaConfig) -> Box<dyn CubeKernel> {
    let out = ColumnGradientsLaunch::new(a(), a(), a(), a());
    let config = config.of(MmaPass::Keys);
    kernel!(dkv_rows_kernel, inputs(), place(), upstream(), a(), out, of, config)
}

pub(super) fn reflected(config: MmaConfig) -> Box<dyn CubeKernel> {
    let out = ReflectedGradientsLaunch::new(a(), a(), a(), a(), a(), a(), a(), a(), a());
    kernel!(reflected_kernel, inputs(), place(), upstream(), out, config.of(MmaPass::Rows))
}

pub(super) fn pack(config: MmaConfig) -> Box<dyn CubeKernel> {
    let to = PackedRowsLaunch::new(a(), a(), a());
    kernel!(pack_kernel, strided(), strided(), strided(), to, 1, 1, config)
}

pub(super) fn pack_upstream(dim: usize, width: usize) -> Box<dyn CubeKernel> {
    kernel!(pack_upstream_kernel, strided(), strided(), a(), a(), a(), dim, width)
}

pub(super) fn relative(of_rows: bool, config: MmaConfig) -> Box<dyn CubeKernel> {
    let MmaConfig { head_dim, native, .. } = config;
    kernel!(relative_kernel, strided(), strided(), a(), 0, of_rows, head_dim, native)
}

pub(super) fn near(config: MmaConfig) -> Box<dyn CubeKernel> {
    let MmaConfig { head_dim, native, .. } = config;
    kernel!(near_kernel, strided(), strided(), strided(), a(), 0, head_dim, native)
}

pub(super) fn near_gradients(of_rows: bool, config: MmaConfig) -> Box<dyn CubeKernel> {
    let MmaConfig { head_dim, native, .. } = config;
    let (other, sums) = (strided(), strided());
    kernel!(near_gradients_kernel, other, sums, a(), a(), 1, 0, 1.0, of_rows, head_dim, native)
}

pub(super) fn bands(config: MmaConfig) -> Box<dyn CubeKernel> {
    kernel!(bands_kernel, inputs(), place(), upstream(), a(), a(), config.of(MmaPass::Bands))
}

pub(super) fn table() -> Box<dyn CubeKernel> {
    kernel!(table_kernel, a(), a(), 1, 1, 1, 1, 0)
}

pub(super) fn product(form: ProductForm) -> Box<dyn CubeKernel> {
    let factor = || FactorLaunch::new(a(), 1, 1);
    let sizes = ProductSizesLaunch::new(1, 1, 1);
    kernel!(product_kernel::<f32>, factor(), factor(), a(), a(), sizes, form)
}

pub(super) fn warpgroup_product(form: ProductForm) -> Box<dyn CubeKernel> {
    let factor = || FactorLaunch::new(a(), 1, 1);
    let sizes = ProductSizesLaunch::new(1, 1, 1);
    kernel!(WARPGROUP_UNITS; warpgroup_kernel::<f32>, factor(), factor(), a(), a(), a(), sizes, 1, form)
}

pub(super) fn round() -> Box<dyn CubeKernel> {
    kernel!(round_rows, a(), a(), 1, 1)
}

pub(super) fn round_and_sum() -> Box<dyn CubeKernel> {
    kernel!(round_and_sum_rows, a(), a(), a(), 1, 1, 1, 0)
}

pub(super) fn exact(of_left: ExactForm, of_right: ExactForm) -> Box<dyn CubeKernel> {
    let factor = || ExactFactorLaunch::new(a(), 1, 1);
    let sizes = ProductSizesLaunch::new(1, 1, 1);
    kernel!(exact_kernel, factor(), factor(), a(), sizes, 1, 1, of_left, of_right)
}
