//! What the type of a model says that its `config.json` need not.

use pe_zoo::model::{ActivationKind, NormPlace, QkNormKind};

/// `model_type` of a model that `extend` wrote under another encoding than a rotation of transformers.
pub const TUNED_TYPE: &str = "pe-zoo-llama";

/// Type of a model. Defaults are those of transformers.
#[derive(Debug, PartialEq)]
pub(super) struct ModelKind {
    /// `model_type`.
    pub(super) name: &'static str,
    /// Whether queries, keys and values have a bias.
    pub(super) qkv_bias: bool,
    pub(super) qk_norm: QkNormKind,
    pub(super) norm_place: NormPlace,
    /// Channels of a head if the file states none; `None`: the width divided by the number of heads.
    pub(super) head_dim: Option<usize>,
    /// Class of the tokenizer if no file states one.
    pub(super) tokenizer_class: Option<&'static str>,
    /// Layers that have a window, if the model has one.
    pub(super) windows: Windows,
    /// Whether a file that states no window has one.
    pub(super) has_window: HasWindow,
    /// Whether layers with a window have a rotation of their own.
    pub(super) has_two_rotations: bool,
    /// Base of the rotation if the file states none.
    pub(super) theta: f64,
    /// Whether the embedding is also the head if the file does not say.
    pub(super) tied_head: bool,
    /// Facts of Gemma alone.
    pub(super) gemma: Option<Gemma>,
}

/// Layers with a window if the file does not list the kinds of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Windows {
    /// No layer has one, whatever the file lists.
    None,
    /// All layers have one, whatever the file lists.
    All,
    /// All but the first `max_window_layers`.
    Last,
    /// All but every so many; in Gemma 3 `sliding_window_pattern` says how many.
    AllBut(usize),
    /// Those without a rotation.
    Unrotated,
}

/// When layers of the kinds above have a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HasWindow {
    /// If the file states one, or nothing about it.
    ByDefault,
    /// If the file states one.
    IfStated,
    /// If the file states one, or nothing about it, and `use_sliding_window`.
    IfUsed,
    /// If the file states one and `use_sliding_window`.
    IfStatedAndUsed,
}

/// Defaults of a Gemma model, which has a gated unit with GELU, scaled embeddings, a tied head, and gains stored as their
/// difference from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gemma {
    /// Bound of the logits of attention; `None`: the type has none, whatever the file states.
    pub(super) attention_cap: Option<f64>,
    /// Bound of the logits of the next token.
    pub(super) head_cap: Option<f64>,
    /// `query_pre_attn_scalar`: the logits are divided by its root.
    pub(super) query_scalar: f64,
    /// Bases of the rotations of layers without and with a window, if these differ.
    pub(super) bases: Option<Bases>,
}

/// Bases of rotations by kind of layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bases {
    pub(super) full: f64,
    pub(super) windowed: f64,
}

/// Base of the rotation of a `llama` if the file states none: the default of transformers and llama.cpp.
pub(super) const THETA: f64 = 10_000.0;

/// A type with the form of a `llama`.
const LLAMA: ModelKind = ModelKind {
    name: "llama",
    qkv_bias: false,
    qk_norm: QkNormKind::None,
    norm_place: NormPlace::Pre,
    head_dim: None,
    tokenizer_class: Some("LlamaTokenizer"),
    windows: Windows::None,
    has_window: HasWindow::ByDefault,
    has_two_rotations: false,
    theta: THETA,
    tied_head: false,
    gemma: None,
};

/// Types of models that are read.
const KINDS: [ModelKind; 9] = [
    LLAMA,
    ModelKind { name: "mistral", windows: Windows::All, ..LLAMA },
    ModelKind {
        name: "qwen2",
        qkv_bias: true,
        tokenizer_class: Some("Qwen2Tokenizer"),
        windows: Windows::Last,
        has_window: HasWindow::IfUsed,
        ..LLAMA
    },
    ModelKind {
        name: "qwen3",
        qk_norm: QkNormKind::Head,
        head_dim: Some(128),
        tokenizer_class: Some("Qwen2Tokenizer"),
        windows: Windows::Last,
        has_window: HasWindow::IfUsed,
        ..LLAMA
    },
    ModelKind {
        name: "smollm3",
        tokenizer_class: None,
        windows: Windows::Unrotated,
        has_window: HasWindow::IfStatedAndUsed,
        theta: 2e6,
        tied_head: true,
        ..LLAMA
    },
    ModelKind {
        name: "olmo2",
        qk_norm: QkNormKind::Width,
        norm_place: NormPlace::Output,
        tokenizer_class: None,
        ..LLAMA
    },
    ModelKind {
        name: "olmo3",
        qk_norm: QkNormKind::Width,
        norm_place: NormPlace::Output,
        tokenizer_class: None,
        windows: Windows::AllBut(4),
        has_two_rotations: true,
        ..LLAMA
    },
    ModelKind {
        name: "gemma2",
        norm_place: NormPlace::Both,
        head_dim: Some(256),
        tokenizer_class: Some("GemmaTokenizer"),
        windows: Windows::AllBut(2),
        tied_head: true,
        gemma: Some(Gemma {
            attention_cap: Some(50.0),
            head_cap: Some(30.0),
            query_scalar: 256.0,
            bases: None,
        }),
        ..LLAMA
    },
    ModelKind {
        name: "gemma3_text",
        qk_norm: QkNormKind::Head,
        norm_place: NormPlace::Both,
        head_dim: Some(256),
        tokenizer_class: Some("GemmaTokenizer"),
        windows: Windows::AllBut(6),
        has_two_rotations: true,
        tied_head: true,
        gemma: Some(Gemma {
            attention_cap: None,
            head_cap: None,
            query_scalar: 256.0,
            bases: Some(Bases { full: 1e6, windowed: 1e4 }),
        }),
        ..LLAMA
    },
];

/// Type of a model of this program.
static TUNED: ModelKind = ModelKind {
    name: TUNED_TYPE,
    tokenizer_class: None,
    windows: Windows::All,
    has_window: HasWindow::IfStated,
    ..LLAMA
};

impl ModelKind {
    /// Finds a type by its name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        if name == TUNED_TYPE {
            return Some(&TUNED);
        }
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Names of the types of transformers.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|kind| kind.name)
    }

    /// Activation of the feed-forward network.
    pub(super) fn activation(&self) -> ActivationKind {
        if self.gemma.is_some() { ActivationKind::GeGlu } else { ActivationKind::SwiGlu }
    }

    /// Name of the activation in the file.
    pub(super) fn activation_name(&self) -> &'static str {
        if self.gemma.is_some() { "gelu_pytorch_tanh" } else { "silu" }
    }
}
