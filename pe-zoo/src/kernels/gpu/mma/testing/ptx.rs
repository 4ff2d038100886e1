//! PTX of the kernels, which `ci/gpu-budgets.sh` assembles and counts.

use super::{kernels, terms};
use crate::kernels::activation::NumberActivation;
use crate::kernels::gpu::mma::approximate::NATIVE;
use crate::kernels::gpu::mma::config::{
    ACROSS, AlongRow, MOST_GROUPS, MmaConfig, MmaPass, OWNED, OfKeys, STEP,
};
use crate::kernels::gpu::mma::product::exact::ExactForm;
use crate::kernels::gpu::mma::product::kernel::{COPIED_DEPTH, DEPTH};
use crate::kernels::gpu::mma::product::{AfterSums, ProductForm};
use crate::kernels::gpu::testing::ptx::{ptx, written};
use crate::score::{FarPairs, TracedTerm};

const PLAIN: MmaConfig = MmaConfig {
    head_dim: 64,
    value_dim: 64,
    second_dim: 0,
    slopes: false,
    distance: false,
    decay: false,
    decay_residual: false,
    pieces: 0,
    along: AlongRow::Nothing,
    entries: 0,
    row_groups: MOST_GROUPS,
    native: NATIVE,
    warpgroups: false,
};

/// A configuration of each form, with its name.
fn forms() -> [(&'static str, MmaConfig); 15] {
    let term = TracedTerm::new::<_, 3, 0>(&terms::Power).interned();
    let pairs = FarPairs::Distance { from: 512 };
    [
        ("no modifier", PLAIN),
        ("slopes", MmaConfig { slopes: true, ..PLAIN }),
        ("distances", MmaConfig { distance: true, ..PLAIN }),
        ("pieces by distance", MmaConfig { pieces: 33, ..PLAIN }),
        ("decay", MmaConfig { decay: true, decay_residual: true, ..PLAIN }),
        ("contextual", MmaConfig { along: AlongRow::Contextual, entries: 64, ..PLAIN }),
        ("contextual slopes", MmaConfig { along: AlongRow::ContextualSlope, ..PLAIN }),
        (
            "contextual pieces",
            MmaConfig { along: AlongRow::ContextualPieces, entries: 2 * 65, ..PLAIN },
        ),
        ("sticks", MmaConfig { along: AlongRow::Sticks { strict: true }, ..PLAIN }),
        ("distances by query", MmaConfig { along: AlongRow::QueryDistance, entries: 128, ..PLAIN }),
        ("step prices", MmaConfig { along: AlongRow::StepPrices, second_dim: 16, ..PLAIN }),
        (
            "far products",
            MmaConfig { along: AlongRow::FarProducts(pairs), second_dim: 16, ..PLAIN },
        ),
        ("decaying channels", MmaConfig { along: AlongRow::ChannelDecay, ..PLAIN }),
        ("function of pairs", MmaConfig { along: AlongRow::Term(term), ..PLAIN }),
        (
            "function of pairs and distances",
            MmaConfig { along: AlongRow::Term(term), distance: true, ..PLAIN },
        ),
    ]
}

#[test]
fn fragments_stay_in_registers() {
    for width in [32, 64, 96, 128] {
        for (name, config) in forms() {
            let config = MmaConfig { head_dim: width, value_dim: width, ..config };
            // Most walks have a part near the diagonal and one further left. Under sticks there is nothing further left, and
            // whole rows of sums are added up in a walk of their own.
            let (whole, far) = (usize::from(config.carries()), usize::from(config.has_far()));
            let [ahead, by_rows, by_keys] =
                [MmaPass::Forward, MmaPass::Rows, MmaPass::Keys].map(|pass| config.of(pass));
            let products = |config: MmaConfig, products, columns| {
                products * config.row_groups * columns / ACROSS * width / STEP
            };
            let of_forward = products(ahead, 2 * (1 + far), ahead.block());
            let of_rows = products(by_rows, 2 * whole + 3 * (1 + far), by_rows.gradient_block());
            let mut passes = vec![
                ("forward", kernels::forward(config), of_forward),
                ("dq", kernels::dq(config), of_rows),
            ];
            if config.by_distance() {
                let count = products(config.of(MmaPass::Bands), 2, OWNED);
                passes.push(("bands", kernels::bands(config), count));
            }
            if config.by_rows() {
                for of in config.of_keys() {
                    let (pass, count) = match of {
                        OfKeys::Both => ("dkv", 4),
                        OfKeys::Keys => ("dk", 3),
                        OfKeys::Values => ("dv", 2),
                    };
                    let count = products(by_keys, count, OWNED);
                    passes.push((pass, kernels::dkv_rows(*of, config), count));
                }
            } else {
                let count = products(by_keys, 2 * 4, by_keys.query_block());
                passes.push(("dkv", kernels::dkv(config), count));
            }
            if config.fits_warpgroups() {
                let config = MmaConfig { warpgroups: true, row_groups: 1, ..config };
                let mut passes =
                    vec![("forward", kernels::forward(config)), ("dq", kernels::dq(config))];
                if !config.by_rows() {
                    passes.push(("dkv", kernels::dkv(config)));
                }
                for (pass, kernel) in passes {
                    let text = ptx(&*kernel);
                    let name = format!("warpgroups, {name}, heads of {width}, {pass}");
                    written(&name, &text);
                    assert!(!text.contains(".local"), "{name}: an array lies in local memory");
                    assert!(text.contains("wgmma.mma_async.sync.aligned.m64"), "{name}");
                    assert!(!text.contains("mma.sync.aligned.m16n8k16"), "{name}");
                }
            }
            for (pass, kernel, expected) in passes {
                let text = ptx(&*kernel);
                let name = format!("mma, {name}, heads of {width}, {pass}");
                if width.is_multiple_of(64) {
                    written(&name, &text);
                }
                assert!(!text.contains(".local"), "{name}: an array lies in local memory");
                assert_eq!(text.matches("mma.sync.aligned.m16n8k16").count(), expected, "{name}");
            }
        }
    }
}

#[test]
fn queries_that_change_stay_in_registers() {
    for width in [32, 64, 96, 128] {
        let config = MmaConfig {
            head_dim: width,
            value_dim: width,
            along: AlongRow::Reflected,
            decay: true,
            ..PLAIN
        };
        let product = OWNED / ACROSS * width / STEP;
        // Forward, a diagonal block has a product with the values, and one on the left also those with keys, directions and updates.
        // Backward, the queries change twice, a diagonal block has two products, and one on the left ten.
        let forward = ("forward", kernels::forward(config), 1 + 4);
        for (pass, kernel, products) in
            [forward, ("backward", kernels::reflected(config), 2 + 2 + 10)]
        {
            let text = ptx(&*kernel);
            let name = format!("mma, reflected products, heads of {width}, {pass}");
            if width.is_multiple_of(64) {
                written(&name, &text);
            }
            assert!(!text.contains(".local"), "{name}: an array lies in local memory");
            let count = text.matches("mma.sync.aligned.m16n8k16").count();
            assert_eq!(count, products * product, "{name}");
        }
    }
}

#[test]
fn conversions_compile() {
    for width in [64, 128] {
        let config = MmaConfig { head_dim: width, value_dim: width, ..PLAIN };
        written(&format!("mma, pack, heads of {width}"), &ptx(&*kernels::pack(config)));
        let upstream = ptx(&*kernels::pack_upstream(width, width));
        written(&format!("mma, pack of gradients, heads of {width}"), &upstream);
    }
    written("mma, table of distances", &ptx(&*kernels::table()));
    let config = MmaConfig { along: AlongRow::ChannelDecay, ..PLAIN };
    written("mma, near products", &ptx(&*kernels::near(config)));
    for (of_rows, of) in [(true, "queries"), (false, "keys")] {
        written(&format!("mma, relative {of}"), &ptx(&*kernels::relative(of_rows, config)));
        let gradients = ptx(&*kernels::near_gradients(of_rows, config));
        written(&format!("mma, gradients of near {of}"), &gradients);
    }
}

fn of_warpgroups(form: ProductForm, name: &str) {
    let form = ProductForm { depth: COPIED_DEPTH, copies: true, ..form };
    let text = ptx(&*kernels::warpgroup_product(form));
    written(&format!("warpgroups, {name}"), &text);
    assert!(!text.contains(".local"), "{name}: an array lies in local memory");
    assert_eq!(text.matches("wgmma.mma_async").count(), 4, "{name}");
}

#[test]
fn products_stay_in_registers() {
    let place = |transposed| if transposed { "transposed" } else { "in order" };
    for left_transposed in [false, true] {
        for right_transposed in [false, true] {
            for (whole, bias) in [(true, false), (true, true), (false, true)] {
                let form = ProductForm {
                    left_transposed,
                    right_transposed,
                    bias,
                    after: AfterSums::Nothing,
                    whole,
                    fours: whole,
                    depth: if whole { COPIED_DEPTH } else { DEPTH },
                    copies: whole,
                };
                let text = ptx(&*kernels::product(form));
                let name = format!(
                    "product, left {}, right {}{}{}",
                    place(left_transposed),
                    place(right_transposed),
                    if bias { ", bias" } else { "" },
                    if whole { "" } else { ", any sizes" },
                );
                written(&format!("mma, {name}"), &text);
                assert!(!text.contains(".local"), "{name}: an array lies in local memory");
                let count = text.matches("mma.sync.aligned.m16n8k16").count();
                assert_eq!(count, 2 * form.depth, "{name}");
                of_warpgroups(form, &name);
            }
        }
    }
    let [relu, gelu] = [NumberActivation::Relu, NumberActivation::Gelu];
    for (right_transposed, bias, after, name) in [
        (false, true, AfterSums::Activated(relu), "relu"),
        (false, true, AfterSums::Activated(gelu), "gelu"),
        (true, false, AfterSums::Differentiated(relu), "gradient of relu"),
        (true, false, AfterSums::Differentiated(gelu), "gradient of gelu"),
    ] {
        let form = ProductForm {
            left_transposed: false,
            right_transposed,
            bias,
            after,
            whole: true,
            fours: true,
            depth: COPIED_DEPTH,
            copies: true,
        };
        of_warpgroups(form, &format!("product, {name}"));
    }
    for [left, right] in [[true, true], [true, false], [false, true], [false, false]] {
        for fours in [true, false] {
            let form = |inner_is_contiguous| ExactForm { inner_is_contiguous, fours };
            let text = ptx(&*kernels::exact(form(left), form(right)));
            let order = |inner| if inner { "by terms" } else { "across" };
            let name = format!(
                "mma, exact product, left {}, right {}{}",
                order(left),
                order(right),
                if fours { "" } else { ", any sizes" },
            );
            written(&name, &text);
            assert!(!text.contains(".local"), "{name}: an array lies in local memory");
            assert_eq!(text.matches("mma.sync.aligned.m16n8k16").count(), 96, "{name}");
        }
    }
    written("mma, rounded rows", &ptx(&*kernels::round()));
    written("mma, rounded rows and their sum", &ptx(&*kernels::round_and_sum()));
}
