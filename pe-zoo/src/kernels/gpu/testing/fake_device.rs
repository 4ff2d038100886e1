//! Fake device for tests without a GPU.

#![expect(unsafe_code, reason = "arguments that nobody reads")]

use std::sync::Arc;

use burn_cubecl::cubecl::cmma::MatrixLayout;
use burn_cubecl::cubecl::features::{Features, MmaConfig};
use burn_cubecl::cubecl::ir::{
    ContiguousElements, DeviceIdentity, DeviceProperties, ElemType, FloatKind, HardwareProperties,
    MemoryDeviceProperties, MmaProperties, TargetProperties,
};
use burn_cubecl::cubecl::prelude::{BufferArg, VectorSize};
use burn_cubecl::cubecl::profile::TimingMethod;
use burn_cubecl::cubecl::server::Handle;
use cubecl_common::device::{DeviceId, ServiceId};
use cubecl_environment::stream::StreamId;

use crate::kernels::gpu::config::DeviceLimits;

/// Shared memory and units of an H200.
pub(in crate::kernels::gpu) const LIMITS: DeviceLimits =
    DeviceLimits { shared_bytes: 232_448, units: 1024 };

/// Creates a device with tensor cores for `bf16` and `tf32`, and also for f32, which no real device
/// has: with f32 a product is exact, so that errors in the layout of its factors become visible.
pub(in crate::kernels::gpu) fn device() -> Arc<DeviceProperties> {
    let hardware = HardwareProperties {
        load_width: 128,
        vector_register_count: None,
        plane_size_min: 32,
        plane_size_max: 32,
        max_bindings: 1024,
        max_shared_memory_size: LIMITS.shared_bytes,
        max_cube_count: (u32::MAX >> 1, 65_535, 65_535),
        max_units_per_cube: 1024,
        max_cube_dim: (1024, 1024, 64),
        num_streaming_multiprocessors: Some(132),
        num_tensor_cores: Some(4),
        min_tensor_cores_dim: Some(8),
        num_cpu_cores: None,
        last_level_cache_size: None,
        max_vector_size: VectorSize::MAX,
        cube_mma_reserved_shared_memory: 0,
    };
    let mut features = Features::default();
    for (factors, k) in [(FloatKind::BF16, 16), (FloatKind::TF32, 8), (FloatKind::F32, 16)] {
        features.matmul.cmma.insert(MmaConfig {
            a_type: ElemType::Float(factors),
            b_type: ElemType::Float(factors),
            cd_type: ElemType::Float(FloatKind::F32),
            m: 16,
            n: 16,
            k,
        });
    }
    let name = "simulated".to_owned();
    Arc::new(DeviceProperties::new(
        features,
        MemoryDeviceProperties::new(u64::MAX, 256),
        hardware,
        TimingMethod::Device,
        DeviceIdentity { name: name.clone(), fingerprint: name, physical: None },
    ))
}

/// Creates an argument for a kernel that is compiled but never launched.
pub(in crate::kernels::gpu) fn argument() -> BufferArg {
    let service = ServiceId::of::<DeviceLimits>(DeviceId::new(0, 0));
    let handle = Handle::new(service, StreamId::current(), 64);
    // SAFETY: no memory is accessed, because the kernel is compiled and not launched.
    unsafe { BufferArg::from_raw_parts(handle, 16) }
}

/// Layout of fragments on NVIDIA's tensor cores: two adjacent numbers of bf16 factors and of f32 results in a register pair.
pub(in crate::kernels::gpu) fn target() -> Arc<TargetProperties> {
    Arc::new(TargetProperties {
        mma: MmaProperties {
            register_size_bits: 32,
            const_plane_size: 32,
            register_layout_a: MatrixLayout::RowMajor,
            register_layout_b: MatrixLayout::ColMajor,
            register_layout_acc: MatrixLayout::RowMajor,
            register_duplication_a: 1,
            register_duplication_b: 1,
            register_duplication_acc: 1,
            contiguous_elements: ContiguousElements::new(|_, _, _| 2),
        },
    })
}
