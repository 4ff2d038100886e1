//! Every encoding: one file each, and one line each in the list below.
//!
//! A file `zoo/<name>.rs` defines `META`, `Config` and the encoding's type; the list makes of them
//! the enums [`Pe`] and [`PeConfig`], the table [`ALL`], and one conformance test each.

mod registry;

registry::zoo! {
    abacus => Abacus,
    alibi => Alibi,
    cope => Cope,
    fope => Fope,
    learned_absolute => LearnedAbsolute,
    nope => Nope,
    pope => Pope,
    relative => Relative,
    relative_capped => RelativeCapped,
    rope => Rope,
    selective_rope => SelectiveRope,
    sinusoidal => Sinusoidal,
    xpos => Xpos,
}

#[cfg(test)]
mod tests;
