//! PTX of the kernels, which `ci/gpu-budgets.sh` assembles and counts.

use super::kernels;
use crate::kernels::gpu::mma::config::{ACROSS, MmaConfig, OWNED, STEP};
use crate::kernels::gpu::mma::exponential::NATIVE;
use crate::kernels::gpu::testing::ptx::{ptx, written};

const PLAIN: MmaConfig = MmaConfig {
    head_dim: 64,
    value_dim: 64,
    slopes: false,
    distance: false,
    decay: false,
    decay_residual: false,
    native: NATIVE,
};

const FORMS: [(&str, MmaConfig); 4] = [
    ("no modifier", PLAIN),
    ("slopes", MmaConfig { slopes: true, ..PLAIN }),
    ("distances", MmaConfig { distance: true, ..PLAIN }),
    ("decay", MmaConfig { decay: true, decay_residual: true, ..PLAIN }),
];

#[test]
fn fragments_stay_in_registers() {
    for width in [32, 64, 96, 128] {
        for (name, config) in FORMS {
            let config = MmaConfig { head_dim: width, value_dim: width, ..config };
            for (pass, kernel, products, columns) in [
                ("forward", kernels::forward(config), 2, config.block()),
                ("dq", kernels::dq(config), 3, config.block()),
                ("dkv", kernels::dkv(config), 4, config.query_block()),
                // One loop, with masks.
                ("bands", kernels::bands(config), 1, OWNED),
            ] {
                if pass == "bands" && !config.distance {
                    continue;
                }
                let text = ptx(&*kernel);
                let name = format!("mma, {name}, heads of {width}, {pass}");
                if width.is_multiple_of(64) {
                    written(&name, &text);
                }
                assert!(!text.contains(".local"), "{name}: an array lies in local memory");
                // The walk has a masked part and one without a mask.
                let expected = 2 * products * columns / ACROSS * width / STEP;
                assert_eq!(text.matches("mma.sync.aligned.m16n8k16").count(), expected, "{name}");
            }
        }
    }
}

#[test]
fn conversions_compile() {
    for width in [64, 128] {
        written(&format!("mma, pack, heads of {width}"), &ptx(&*kernels::pack(width, width)));
        let upstream = ptx(&*kernels::pack_upstream(width, width));
        written(&format!("mma, pack of gradients, heads of {width}"), &upstream);
    }
    written("mma, table of distances", &ptx(&*kernels::table()));
}
