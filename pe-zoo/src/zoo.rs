//! Every encoding: one file each, and one line each in the list below.
//!
//! A file `zoo/<name>.rs` defines `META`, `Config` and the encoding's type; the list makes of them
//! the enums [`Pe`] and [`PeConfig`], the table [`ALL`], and one conformance test each.

mod registry;

registry::zoo! {
    alibi => Alibi,
    cope => Cope,
    cope_alibi => CopeAlibi,
    cope_mlp => CopeMlp,
    dape => Dape,
    fire => Fire,
    fox => Fox,
    grape => Grape,
    kerple => Kerple,
    learned_absolute => LearnedAbsolute,
    nope => Nope,
    path => Path,
    relative => Relative,
    relative_capped => RelativeCapped,
    rope => Rope,
    sandwich => Sandwich,
    sinusoidal => Sinusoidal,
    stick_breaking => StickBreaking,
    t5_bias => T5Bias,
    tape => Tape,
}

#[cfg(test)]
mod tests;
