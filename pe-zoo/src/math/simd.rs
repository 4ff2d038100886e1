//! The widest instructions of this machine.

/// Runs `work` compiled for the widest instructions of this machine.
///
/// Only code that is inlined into `work` is compiled so.
#[inline(always)]
pub(crate) fn dispatch(work: impl FnOnce()) {
    pulp::Arch::new().dispatch(Run(work));
}

struct Run<F>(F);

impl<F: FnOnce()> pulp::WithSimd for Run<F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        (self.0)();
    }
}
