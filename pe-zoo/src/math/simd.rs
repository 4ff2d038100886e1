//! Dispatch to the widest SIMD instructions of the machine.

/// Runs `work` compiled for the widest SIMD instructions of the machine.
///
/// This applies only to code that is inlined into `work`.
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
