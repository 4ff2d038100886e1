//! Every encoding: one file each, and one line each in the list below.
//!
//! A file `zoo/<name>.rs` defines `META`, `Config` and the encoding's type; the list makes of them
//! the enums [`Pe`] and [`PeConfig`], the table [`ALL`], and one conformance test each.

mod registry;

registry::zoo! {
    abacus => Abacus,
    alibi => Alibi,
    cope => Cope,
    cope_alibi => CopeAlibi,
    cope_mlp => CopeMlp,
    dape => Dape,
    fire => Fire,
    fope => Fope,
    fox => Fox,
    grape => Grape,
    kerple => Kerple,
    learned_absolute => LearnedAbsolute,
    nope => Nope,
    path => Path,
    pope => Pope,
    randomized => Randomized,
    relative => Relative,
    relative_capped => RelativeCapped,
    rope => Rope,
    sandwich => Sandwich,
    selective_rope => SelectiveRope,
    sinusoidal => Sinusoidal,
    stick_breaking => StickBreaking,
    t5_bias => T5Bias,
    tape => Tape,
    xpos => Xpos,
}

#[cfg(test)]
mod tests;
