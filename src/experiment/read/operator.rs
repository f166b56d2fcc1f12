//! One entry of `operators`: a kind with its sizes, or a layer of a model.

use super::grid::AxisDraft;
use super::product::{self, Product};
use crate::device::DType;
use crate::input::yaml::Node;
use crate::input::{Diagnostic, Diagnostics, Fields, Span, did_you_mean, list};
use crate::operator::models::{self, Layer, Model};
use crate::operator::{Kind, Operator, OperatorError};
use crate::units::Bytes;

/// An operator whose sizes depend on axes.
#[derive(Clone, Debug)]
pub(super) struct OperatorDraft<'n> {
    pub node: &'n Node,
    pub kind: Kind,
    sizes: Sizes,
}

#[derive(Clone, Debug)]
enum Sizes {
    Gemm {
        m: Product,
        n: Product,
        k: Product,
    },
    Bytes(Product),
    Layer {
        model: &'static Model,
        layer: Layer,
        seq: Product,
        batch: Product,
    },
}

/// Reads an entry, or pushes what is wrong with it.
pub(super) fn read<'n>(
    node: &'n Node,
    text: &str,
    axes: &[AxisDraft<'_>],
    found: &mut Diagnostics,
) -> Option<OperatorDraft<'n>> {
    let mut fields = Fields::of(node, "an operator", found)?;
    let model = fields.get("model");
    let op = match model {
        Some(_) => fields.get("op"),
        None => fields.need("op", "ag-gemm", found),
    };
    let kind = op.map(|node| {
        let word = node.word("op", found)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == word);
        if kind.is_none() {
            let mistake = node.wrong(format!("unknown operator `{word}`"), "no such operator");
            found.push(mistake.help(did_you_mean(word, Kind::ALL.map(Kind::name))));
        }
        kind
    });
    if let Some(model) = model {
        let draft = layer(&mut fields, model, node, kind, text, axes, found);
        match draft {
            Some(_) => fields.finish(found),
            None => fields.finish_early(found),
        }
        return draft;
    }
    let Some(Some(kind)) = kind else {
        fields.finish_early(found);
        return None;
    };
    let mut size = |key: &'static str, example: &str, fields: &mut Fields<'n>| {
        let node = fields.need(key, example, found)?;
        product::read(key, node, text, axes, found)
    };
    let sizes = match kind.is_fused() {
        true => {
            let m = size("m", "seq", &mut fields);
            let n = size("n", "4*hidden", &mut fields);
            let k = size("k", "hidden", &mut fields);
            m.zip(n).zip(k).map(|((m, n), k)| Sizes::Gemm { m, n, k })
        }
        false => size("bytes", "64 MiB", &mut fields).map(Sizes::Bytes),
    };
    let (unfit, needs) = match kind.is_fused() {
        true => (&["bytes"][..], "it has the sizes `m`, `n` and `k`"),
        false => (
            &["m", "n", "k"][..],
            "a bare collective has one size, `bytes`",
        ),
    };
    for key in unfit {
        if let Some(node) = fields.get(key) {
            let mistake = node.wrong(format!("`{key}` is no size of {kind}"), "does not apply");
            found.push(mistake.help(needs));
        }
    }
    fields.finish(found);
    Some(OperatorDraft {
        node,
        kind,
        sizes: sizes?,
    })
}

fn layer<'n>(
    fields: &mut Fields<'n>,
    model: &'n Node,
    node: &'n Node,
    kind: Option<Option<Kind>>,
    text: &str,
    axes: &[AxisDraft<'_>],
    found: &mut Diagnostics,
) -> Option<OperatorDraft<'n>> {
    let name = model.word("model", found)?;
    let preset = models::find(name).ok();
    if preset.is_none() {
        let mistake = model.wrong(format!("unknown model `{name}`"), "no such model");
        found.push(mistake.help(did_you_mean(name, models::names())));
    }
    let layer = fields.need("layer", "fc1", found);
    let layer = layer.and_then(|node| {
        let names = Layer::ALL.map(Layer::name);
        node.choice("layer", &names, found).map(|at| Layer::ALL[at])
    });
    let seq = fields.need("seq", "4096", found);
    let seq = seq.and_then(|node| product::read("seq", node, text, axes, found));
    let batch = match fields.get("batch") {
        None => Some(Product::one(node.span.clone())),
        Some(node) => product::read("batch", node, text, axes, found),
    };
    let (layer, model) = (layer?, preset?);
    let kind = match kind {
        None => model.gemm(layer, 1, 1).ok()?.kind,
        Some(kind) => kind?,
    };
    if !kind.is_fused() {
        let message = format!("a layer of a model is a GEMM, {kind} has none");
        let fused: Vec<&str> = Kind::ALL
            .into_iter()
            .filter(|kind| kind.is_fused())
            .map(Kind::name)
            .collect();
        let mistake = node.wrong(message, "`op` and `model` contradict each other");
        found.push(mistake.help(format!("use one of {}", list(fused))));
        return None;
    }
    let sizes = Sizes::Layer {
        model,
        layer,
        seq: seq?,
        batch: batch?,
    };
    Some(OperatorDraft { node, kind, sizes })
}

impl OperatorDraft<'_> {
    /// Whether a size depends on the axis.
    pub fn uses(&self, axis: usize) -> bool {
        let products = match &self.sizes {
            Sizes::Gemm { m, n, k } => vec![m, n, k],
            Sizes::Bytes(bytes) => vec![bytes],
            Sizes::Layer { seq, batch, .. } => vec![seq, batch],
        };
        products.iter().any(|product| product.axes.contains(&axis))
    }

    /// The operator with a value for every axis.
    ///
    /// # Errors
    /// What is wrong with it, at the size at fault.
    pub fn at(&self, values: &[u64], tp: u32, dtype: DType) -> Result<Operator, Diagnostic> {
        let size = |product: &Product| {
            product.value(values).ok_or_else(|| {
                Diagnostic::new(product.span.clone(), "the size is beyond 64 bits", "")
                    .help("use smaller values")
            })
        };
        let made = match &self.sizes {
            Sizes::Gemm { m, n, k } => {
                Operator::gemm(self.kind, size(m)?, size(n)?, size(k)?, tp, dtype)
            }
            Sizes::Bytes(bytes) => {
                Operator::collective(self.kind, Bytes::new(size(bytes)?), tp, dtype)
            }
            Sizes::Layer {
                model,
                layer,
                seq,
                batch,
            } => model
                .gemm(*layer, size(seq)?, size(batch)?)
                .and_then(|gemm| Operator::gemm(self.kind, gemm.m, gemm.n, gemm.k, tp, dtype)),
        };
        made.map_err(|error| Diagnostic::from_words(self.place(&error), "", &error.to_string()))
    }

    /// The size that an error is about.
    fn place(&self, error: &OperatorError) -> Span {
        let name = match error {
            OperatorError::Zero(name)
            | OperatorError::Indivisible { name, .. }
            | OperatorError::TooLarge { name, .. } => *name,
            _ => "",
        };
        match (&self.sizes, name) {
            (Sizes::Gemm { m, .. }, "m") => m.span.clone(),
            (Sizes::Gemm { n, .. }, "n") => n.span.clone(),
            (Sizes::Gemm { k, .. }, "k") => k.span.clone(),
            (Sizes::Layer { seq, .. }, "m" | "m = seq × batch") => seq.span.clone(),
            (Sizes::Bytes(bytes), _) => bytes.span.clone(),
            _ => self.node.span.clone(),
        }
    }
}
