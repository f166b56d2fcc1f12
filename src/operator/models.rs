//! Named shapes: the four tensor-parallel GEMMs of a transformer layer.
//!
//! With h the hidden size, f the feed-forward size, q and g the query and key/value heads of d
//! elements, and m = sequence × batch tokens:
//!
//! | layer | operator | n | k |
//! |---|---|---|---|
//! | `qkv` | AG+GEMM (column-parallel) | (q + 2g)·d | h |
//! | `proj` | GEMM+RS (row-parallel) | h | q·d |
//! | `fc1` | AG+GEMM | f, or 2f when gated (gate and up projections side by side) | h |
//! | `fc2` | GEMM+RS | h | f |
//!
//! ```
//! use duet::operator::models::{self, Layer};
//! let gemm = models::find("llama3-70b")?.gemm(Layer::Qkv, 8192, 1)?;
//! assert_eq!((gemm.m, gemm.n, gemm.k), (8192, (64 + 2 * 8) * 128, 8192));
//! # Ok::<(), duet::operator::OperatorError>(())
//! ```

use super::{Kind, OperatorError};

/// The dimensions of a model's layers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub name: &'static str,
    /// Hidden size h.
    pub hidden: u64,
    /// Feed-forward size f.
    pub ffn: u64,
    /// Query heads q.
    pub heads: u64,
    /// Key/value heads g; fewer than `heads` with grouped-query attention.
    pub kv_heads: u64,
    /// Elements per head d.
    pub head_dim: u64,
    /// Whether the first feed-forward GEMM holds a gate and an up projection.
    pub gated: bool,
    /// Where the numbers come from.
    pub source: &'static str,
}

const GPT3: &str = "Brown et al. 2020, table 2.1; f = 4h";
const LLAMA2: &str = "Touvron et al. 2023 (Llama 2) and the released params.json";
const LLAMA3: &str = "Grattafiori et al. 2024 (Llama 3), table 3";
const QWEN25: &str = "Qwen2.5 model cards, config.json";

/// A row of the table: name, h, f, q, g, d, gated, source.
#[allow(
    clippy::too_many_arguments,
    reason = "the table below reads as a table"
)]
const fn row(
    name: &'static str,
    hidden: u64,
    ffn: u64,
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    gated: bool,
    source: &'static str,
) -> Model {
    Model {
        name,
        hidden,
        ffn,
        heads,
        kv_heads,
        head_dim,
        gated,
        source,
    }
}

/// All presets. To add a model, add a row.
#[rustfmt::skip]
pub const MODELS: &[Model] = &[
    row("gpt3-6.7b",      4096, 16384,  32,  32, 128, false, GPT3),
    row("gpt3-175b",     12288, 49152,  96,  96, 128, false, GPT3),
    row("mt-nlg-530b",   20480, 81920, 128, 128, 160, false, "Smith et al. 2022, section 3; f = 4h"),
    row("bloom-176b",    14336, 57344, 112, 112, 128, false, "BLOOM model card, config.json; f = 4h"),
    row("llama2-7b",      4096, 11008,  32,  32, 128, true,  LLAMA2),
    row("llama2-13b",     5120, 13824,  40,  40, 128, true,  LLAMA2),
    row("llama2-70b",     8192, 28672,  64,   8, 128, true,  LLAMA2),
    row("llama3-8b",      4096, 14336,  32,   8, 128, true,  LLAMA3),
    row("llama3-70b",     8192, 28672,  64,   8, 128, true,  LLAMA3),
    row("llama3-405b",   16384, 53248, 128,   8, 128, true,  LLAMA3),
    row("mistral-7b",     4096, 14336,  32,   8, 128, true,  "Jiang et al. 2023, table 1"),
    row("qwen2.5-7b",     3584, 18944,  28,   4, 128, true,  QWEN25),
    row("qwen2.5-32b",    5120, 27648,  40,   8, 128, true,  QWEN25),
    row("qwen2.5-72b",    8192, 29568,  64,   8, 128, true,  QWEN25),
];

/// The names of all presets.
pub fn names() -> Vec<&'static str> {
    MODELS.iter().map(|model| model.name).collect()
}

/// The preset `name`.
///
/// # Errors
/// [`OperatorError::UnknownModel`].
pub fn find(name: &str) -> Result<&'static Model, OperatorError> {
    MODELS
        .iter()
        .find(|model| model.name == name)
        .ok_or_else(|| OperatorError::UnknownModel(name.to_owned()))
}

/// A tensor-parallel GEMM of a transformer layer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Query, key and value projections, side by side.
    Qkv,
    /// Attention's output projection.
    Proj,
    /// First feed-forward GEMM.
    Fc1,
    /// Second feed-forward GEMM.
    Fc2,
}

impl Layer {
    /// All layers in the order in which a transformer runs them.
    pub const ALL: [Self; 4] = [Self::Qkv, Self::Proj, Self::Fc1, Self::Fc2];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qkv => "qkv",
            Self::Proj => "proj",
            Self::Fc1 => "fc1",
            Self::Fc2 => "fc2",
        }
    }
}

impl std::str::FromStr for Layer {
    type Err = OperatorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|layer| layer.name() == text)
            .ok_or_else(|| OperatorError::UnknownLayer(text.to_owned()))
    }
}

/// A layer's GEMM, global shape \[elements\].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LayerGemm {
    /// The operator under sequence parallelism; without it, GEMM+AR takes GEMM+RS's place.
    pub kind: Kind,
    pub m: u64,
    pub n: u64,
    pub k: u64,
}

impl Model {
    /// The GEMM of `layer` for `sequence` tokens × `batch` sequences.
    ///
    /// # Errors
    /// [`OperatorError`] when there are no tokens, or too many for a u64.
    pub fn gemm(
        &self,
        layer: Layer,
        sequence: u64,
        batch: u64,
    ) -> Result<LayerGemm, OperatorError> {
        let m = sequence.checked_mul(batch).ok_or(OperatorError::TooLarge {
            name: "m = seq × batch",
            value: u128::from(sequence) * u128::from(batch),
        })?;
        if m == 0 {
            return Err(OperatorError::Zero("m = seq × batch"));
        }
        let (kind, n, k) = match layer {
            Layer::Qkv => (
                Kind::AgGemm,
                (self.heads + 2 * self.kv_heads) * self.head_dim,
                self.hidden,
            ),
            Layer::Proj => (Kind::GemmRs, self.hidden, self.heads * self.head_dim),
            Layer::Fc1 => {
                let width = if self.gated { 2 * self.ffn } else { self.ffn };
                (Kind::AgGemm, width, self.hidden)
            }
            Layer::Fc2 => (Kind::GemmRs, self.hidden, self.ffn),
        };
        Ok(LayerGemm { kind, m, n, k })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(model: &str, layer: &str) -> (Kind, u64, u64) {
        let gemm = find(model)
            .unwrap()
            .gemm(layer.parse().unwrap(), 2048, 4)
            .unwrap();
        assert_eq!(gemm.m, 8192);
        (gemm.kind, gemm.n, gemm.k)
    }

    #[test]
    fn shapes_derived_by_hand() {
        use Kind::{AgGemm, GemmRs};
        // Flux's evaluation: AG (n, k) = (49152, 12288), RS (n, k) = (12288, 49152).
        assert_eq!(shape("gpt3-175b", "fc1"), (AgGemm, 49152, 12288));
        assert_eq!(shape("gpt3-175b", "fc2"), (GemmRs, 12288, 49152));
        // 3 · 12288.
        assert_eq!(shape("gpt3-175b", "qkv"), (AgGemm, 36864, 12288));
        assert_eq!(shape("gpt3-175b", "proj"), (GemmRs, 12288, 12288));
        // Grouped queries: 8192 + 2 · 8 · 128 = 10240; gated: 2 · 28672 = 57344.
        assert_eq!(shape("llama2-70b", "qkv"), (AgGemm, 10240, 8192));
        assert_eq!(shape("llama2-70b", "fc1"), (AgGemm, 57344, 8192));
        assert_eq!(shape("llama2-70b", "fc2"), (GemmRs, 8192, 28672));
        // 16384 + 2 · 8 · 128 = 18432; 2 · 53248 = 106496.
        assert_eq!(shape("llama3-405b", "qkv"), (AgGemm, 18432, 16384));
        assert_eq!(shape("llama3-405b", "fc1"), (AgGemm, 106_496, 16384));
    }

    #[test]
    fn the_table_is_consistent() {
        for model in MODELS {
            assert_eq!(model.heads * model.head_dim, model.hidden, "{}", model.name);
            assert_eq!(model.heads % model.kv_heads, 0, "{}", model.name);
            assert!(
                model.gated || model.ffn == 4 * model.hidden,
                "{}",
                model.name
            );
            assert!(!model.source.is_empty());
        }
        let mut names = names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MODELS.len());
    }

    #[test]
    fn errors_name_the_choices() {
        let text = find("gpt5").unwrap_err().to_string();
        assert!(text.starts_with("unknown model `gpt5`: use one of gpt3-6.7b, gpt3-175b,"));
        assert!("fc3".parse::<Layer>().is_err());
        let model = find("gpt3-175b").unwrap();
        assert!(model.gemm(Layer::Fc1, u64::MAX, 2).is_err());
        assert!(model.gemm(Layer::Fc1, 0, 2).is_err());
    }
}
