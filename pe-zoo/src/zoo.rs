//! Every encoding: one file each, and one line each in the list below.
//!
//! A file `zoo/<name>.rs` defines `META`, `Config` and the encoding's type; the list makes of them
//! the enums [`Pe`] and [`PeConfig`], the table [`ALL`], and one conformance test each.

mod registry;

registry::zoo! {
    alibi => Alibi,
    cope => Cope,
    learned_absolute => LearnedAbsolute,
    nope => Nope,
    randomized => Randomized,
    relative => Relative,
    relative_capped => RelativeCapped,
    rope => Rope,
    sinusoidal => Sinusoidal,
}

#[cfg(test)]
mod tests;
