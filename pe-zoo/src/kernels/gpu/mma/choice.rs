//! Which attentions the kernels compute, and in which configuration.

use burn::backend::Backend;
use burn_cubecl::cubecl::client::Client;
use burn_cubecl::cubecl::features;
use burn_cubecl::cubecl::ir::{ElemType, FloatKind};

use super::approximate::NATIVE;
use super::config::{ACROSS, AlongRow, MOST_GROUPS, MmaConfig, PLANE, ROWS, STEP, UNITS, WIDEST};
use super::second::second_dim;
use crate::kernels::gpu::arguments::last_axis;
#[cfg(feature = "lab")]
use crate::kernels::gpu::lab;
use crate::kernels::operands::{Operands, Sizes, Slot, present};
use crate::kernels::precision::MatmulPrecision;
use crate::kernels::spec::{Spec, WeightRule};
use crate::score::{NeedsOfCores, Remainder, TracedTerm};

/// Whether a device has the tensor instructions of the kernels.
pub(super) fn multiplies(client: &Client) -> bool {
    let (bf16, f32) = (ElemType::Float(FloatKind::BF16), ElemType::Float(FloatKind::F32));
    let shape = features::MmaConfig {
        a_type: bf16,
        b_type: bf16,
        cd_type: f32,
        m: ROWS as u32,
        n: ACROSS as u32,
        k: STEP as u32,
    };
    let properties = client.properties();
    let planes = [properties.hardware.plane_size_min, properties.hardware.plane_size_max];
    let matmul = &properties.features.matmul;
    planes == [PLANE as u32; 2] && matmul.mma.contains(&shape) && matmul.ldmatrix.contains(&bf16)
}

/// Whether a device has the tensor instructions of groups of planes, of the H100 and H200. Those of compute capability 10 and later are others.
pub(super) fn has_warpgroups(client: &Client) -> bool {
    let features = &client.properties().features;
    let bf16 = ElemType::Float(FloatKind::BF16);
    // Both are said of compute capabilities 9 and later, and of 10 and later.
    let (nine, ten) = (
        features.matmul.stmatrix.contains(&bf16),
        features.types.elem.contains_key(&ElemType::Float(FloatKind::E2M1)),
    );
    #[cfg(feature = "lab")]
    if lab::choices().warpgroups == Some(false) {
        return false;
    }
    NATIVE && nine && !ten
}

/// Largest number of row groups; `None` if a measurement chooses a tile or a number of cubes, which only the other kernels
/// have.
#[cfg(feature = "lab")]
fn most_groups() -> Option<usize> {
    let lab::Choices { tile, cubes_each, row_groups, .. } = lab::choices();
    tile.or(cubes_each).is_none().then_some(row_groups.unwrap_or(MOST_GROUPS).clamp(1, MOST_GROUPS))
}

#[cfg(not(feature = "lab"))]
#[expect(clippy::unnecessary_wraps, reason = "a measurement may have none")]
const fn most_groups() -> Option<usize> {
    Some(MOST_GROUPS)
}

/// Decides whether these kernels compute an attention: on a device with their tensor instructions, and if [`supported`].
pub(in crate::kernels::gpu) fn config<B: Backend>(
    client: &Client,
    operands: &Operands<B>,
    spec: &Spec,
) -> Option<MmaConfig> {
    let row_groups = most_groups()?;
    let shared_bytes = client.properties().hardware.max_shared_memory_size;
    supported(operands, spec)
        .map(|config| {
            let warpgroups = config.fits_warpgroups() && has_warpgroups(client);
            // They read a block once for all rows of a cube, and several cubes hide each other's waits.
            let row_groups = if warpgroups { 1 } else { row_groups };
            MmaConfig { row_groups, warpgroups, ..config }
        })
        .filter(|config| config.shared_bytes() <= shared_bytes && multiplies(client))
}

/// Whether the kernels have the precision and the sizes of an attention.
fn takes_sizes(sizes: Sizes, precision: MatmulPrecision) -> bool {
    let whole = |dim: usize| dim > 0 && dim <= WIDEST && dim.is_multiple_of(8);
    // For a few rows, as in decoding, packing all columns takes longer than reading them.
    sizes.rows >= ROWS
        && precision == MatmulPrecision::Bf16
        && whole(sizes.head_dim)
        && whole(sizes.value_dim)
}

/// Whether the kernels of a device compute pair terms, piecewise linear functions, second products, decaying channels or
/// reflected products for these sizes.
pub(in crate::kernels::gpu) fn takes(
    client: &Client,
    sizes: Sizes,
    precision: MatmulPrecision,
    needs: NeedsOfCores,
) -> bool {
    let plain = MmaConfig::plain(sizes);
    let NeedsOfCores {
        by_distance,
        by_position,
        second_dim,
        decays_channels,
        reflects,
        from_zero: _,
        all_rows: _,
    } = needs;
    let largest = match (by_distance, by_position) {
        (0, 0) if decays_channels => MmaConfig { along: AlongRow::ChannelDecay, ..plain },
        (0, 0) if reflects => MmaConfig { along: AlongRow::Reflected, ..plain },
        (0, 0) => MmaConfig { head_dim: WIDEST, value_dim: WIDEST, second_dim, ..plain },
        (_, 0) => MmaConfig { pieces: by_distance, ..plain },
        _ => MmaConfig { along: AlongRow::ContextualPieces, entries: 2 * by_position, ..plain },
    };
    let shared_bytes = client.properties().hardware.max_shared_memory_size;
    most_groups().is_some()
        && takes_sizes(sizes, precision)
        && by_distance.max(by_position) <= UNITS
        && MmaConfig::takes_second(sizes.head_dim, second_dim)
        && largest.shared_bytes() <= shared_bytes
        && multiplies(client)
}

/// Returns the configuration of an attention with factors of bf16, heads of at most 128 channels in whole pieces, with those of a
/// second product, and either slopes, running sums and a bias by distance for a softmax, or one form along the row. Decaying
/// channels have these biases beside them, reflected products running sums, a pair term a distance table.
pub(in crate::kernels::gpu) fn supported<B: Backend>(
    operands: &Operands<B>,
    spec: &Spec,
) -> Option<MmaConfig> {
    const UNSUPPORTED: [Slot; 2] = [Slot::ContextualHidden, Slot::Dense];
    let sizes = operands.sizes();
    let sticks = match spec.weights {
        WeightRule::Softmax => None,
        WeightRule::StickBreaking(rule) if rule.remainder == Remainder::Dropped => {
            Some(AlongRow::Sticks { strict: spec.strict() })
        }
        WeightRule::StickBreaking(_) => return None,
    };
    let of_positions = match present(&operands[Slot::Bends]) {
        true => AlongRow::ContextualPieces,
        false => AlongRow::Contextual,
    };
    let mut forms = [
        present(&operands[Slot::ContextualVectors]).then_some(of_positions),
        present(&operands[Slot::ContextualSlopes]).then_some(AlongRow::ContextualSlope),
        present(&operands[Slot::QueryDistance]).then_some(AlongRow::QueryDistance),
        present(&operands[Slot::StepPricesKeys]).then_some(AlongRow::StepPrices),
        spec.far_pairs.map(AlongRow::FarProducts),
        present(&operands[Slot::ChannelDecay]).then_some(AlongRow::ChannelDecay),
        present(&operands[Slot::ReflectedProducts]).then_some(AlongRow::Reflected),
        sticks,
        TracedTerm::chained(spec.terms.iter().map(|term| term.traced())).map(AlongRow::Term),
    ]
    .into_iter()
    .flatten();
    let along = forms.next().unwrap_or(AlongRow::Nothing);
    let second_dim = second_dim(operands);
    let config = MmaConfig {
        head_dim: sizes.head_dim + second_dim,
        second_dim,
        slopes: present(&operands[Slot::Slope]),
        distance: present(&operands[Slot::Distance]),
        decay: present(&operands[Slot::Decay]),
        decay_residual: present(&operands[Slot::DecayResidual]),
        pieces: last_axis(&operands[Slot::PositionMlpLines]) / 2,
        along,
        entries: match along {
            AlongRow::Contextual | AlongRow::ContextualPieces => {
                last_axis(&operands[Slot::ContextualVectors])
            }
            AlongRow::QueryDistance => last_axis(&operands[Slot::QueryDistance]),
            AlongRow::Nothing
            | AlongRow::ContextualSlope
            | AlongRow::StepPrices
            | AlongRow::FarProducts(_)
            | AlongRow::ChannelDecay
            | AlongRow::Reflected
            | AlongRow::Sticks { .. }
            | AlongRow::Term(_) => 0,
        },
        ..MmaConfig::plain(sizes)
    };
    let by_distance = config.slopes
        || config.by_distance()
        || matches!(along, AlongRow::QueryDistance | AlongRow::FarProducts(_) | AlongRow::Term(_));
    let takes = takes_sizes(sizes, spec.precision)
        && spec.content_scale.is_some_and(|scale| scale > 0.0)
        && (spec.contiguous || !by_distance)
        && MmaConfig::takes_second(sizes.head_dim, second_dim)
        && forms.next().is_none()
        && !(config.distance && config.pieces > 0)
        && match along {
            AlongRow::Nothing | AlongRow::ChannelDecay => true,
            AlongRow::Reflected => spec.first_row == 0 && !config.slopes && !config.by_distance(),
            // Only a table is added to the result of a function.
            AlongRow::Term(_) => !config.differences() && config.pieces == 0,
            _ => !config.biased(),
        }
        && UNSUPPORTED.iter().all(|slot| !present(&operands[*slot]));
    takes.then_some(config)
}
