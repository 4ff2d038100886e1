//! AdamW in one pass over parameter, gradient and moments, in place where their memory is not
//! shared.

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;
use rayon::prelude::*;

use super::{AdamW, Moments};
use crate::kernels::cpu::parallel::{in_pieces, rows_of_piece};
use crate::kernels::cpu::tensors::{dense, numbers, whole};
use crate::kernels::input_tensors::InputTensors;

pub(super) fn adamw<const D: usize>(
    param: Tensor<D>,
    grad: Tensor<D>,
    moments: &mut Moments<D>,
    step: &AdamW,
) -> Tensor<D> {
    let [mean, square] = moments.take(&param);
    let tensors = Vec::from([param, grad, mean, square].map(Tensor::into_dispatch));
    let (param, mean, square) =
        <Dispatch as AdamWBackend>::fused_adamw(InputTensors(tensors), *step);
    moments.tensors = Some([mean, square].map(Tensor::from_dispatch));
    Tensor::from_dispatch(param)
}

#[backend_extension(Flex)]
pub(super) trait AdamWBackend: Backend {
    /// Steps a parameter, given with its gradient and both moments; returns the new parameter and moments.
    fn fused_adamw(
        #[extension_type] tensors: InputTensors<Self>,
        step: AdamW,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl AdamWBackend for Flex {
    fn fused_adamw(
        tensors: InputTensors<Self>,
        step: AdamW,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        let [param, grad, mean, square] = tensors.array();
        let grad = dense(grad);
        let [mut param, mut mean, mut square] = [param, mean, square].map(whole);
        let [bias1, bias2] = step.corrections();
        let [beta1, beta2] = step.betas.map(|beta| beta as f32);
        let keep = (1.0 - step.learning_rate * step.weight_decay) as f32;
        let rate = (step.learning_rate / bias1) as f32;
        let (root, epsilon) = ((1.0 / bias2) as f32, step.epsilon as f32);
        let scale = step.grad_scale as f32;
        let piece = rows_of_piece(4);
        in_pieces(
            param
                .storage_mut::<f32>()
                .par_chunks_mut(piece)
                .zip(mean.storage_mut::<f32>().par_chunks_mut(piece))
                .zip(square.storage_mut::<f32>().par_chunks_mut(piece))
                .zip(numbers(&grad).par_chunks(piece)),
            #[inline(always)]
            |(((param, mean), square), grad)| {
                let all = param.iter_mut().zip(mean).zip(square).zip(grad);
                for (((param, mean), square), grad) in all {
                    let grad = grad * scale;
                    *mean = *mean * beta1 + grad * (1.0 - beta1);
                    *square = *square * beta2 + grad * grad * (1.0 - beta2);
                    *param = *param * keep - rate * *mean / ((*square * root).sqrt() + epsilon);
                }
            },
        );
        (param, mean, square)
    }
}
