//! The shape of a model that is trained, as a suite states it, and the work that a token of it is: what throughput
//! becomes TFLOP/s and the part of a GPU's peak by.

use crate::form::{Form, Key, Type};
use crate::toml_reader::{Table, Value};

/// What a suite does not state is not made up: without it there is no number that needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    /// Of the whole model: 6738415616 for Llama 2 7B.
    pub parameters: Option<u64>,
    /// Transformer layers.
    pub layers: Option<u32>,
    /// Width of a layer.
    pub hidden: Option<u32>,
    /// Width of a layer's feed-forward part.
    pub intermediate: Option<u32>,
    /// Attention heads of a layer; they divide `hidden` evenly.
    pub heads: Option<u32>,
    /// Heads of keys and values, where several of the others share them.
    pub key_value_heads: Option<u32>,
    /// Number of distinct tokens.
    pub vocabulary: Option<u32>,
    /// Tokens of a sample.
    pub sequence: Option<u32>,
}

impl Model {
    /// The floating point operations of one token, forward and backward, nothing computed twice: six for each parameter,
    /// and twelve for each pair of a layer's width and a token that attention looks at.
    pub fn flops_per_token(&self) -> Option<f64> {
        let attention = 12.0 * f64::from(self.layers?) * f64::from(self.hidden?) * f64::from(self.sequence?);
        Some(6.0 * self.parameters? as f64 + attention)
    }
}

/// `model` of a workload.
pub(super) fn form() -> Form {
    let key = |name, about| Key::optional(name, Type::WHOLE, about);
    Form::new([
        key("parameters", "of the whole model: 6738415616 for Llama 2 7B"),
        key("layers", "transformer layers"),
        key("hidden", "width of a layer"),
        key("intermediate", "width of a layer's feed-forward part"),
        key("heads", "attention heads of a layer; they divide `hidden` evenly"),
        key("key_value_heads", "heads of keys and values, where several of the others share them"),
        key("vocabulary", "number of distinct tokens"),
        key("sequence", "tokens of a sample"),
    ])
}

/// From `model` of a workload; what is absent there stays unset.
pub(crate) fn read(table: &Table<'_>) -> Model {
    let number = |key| table.get(key).and_then(|value: Value<'_>| value.small(1..=1 << 30));
    let parameters = table.get("parameters").and_then(|value| value.whole(1..=1 << 50));
    let model = Model {
        parameters,
        layers: number("layers"),
        hidden: number("hidden"),
        intermediate: number("intermediate"),
        heads: number("heads"),
        key_value_heads: number("key_value_heads"),
        vocabulary: number("vocabulary"),
        sequence: number("sequence"),
    };
    table.close(form);
    if let (Some(hidden), Some(heads)) = (model.hidden, model.heads)
        && hidden % heads != 0
    {
        table.diagnostic(format!("`heads` must divide `hidden` evenly, and do not: {hidden} / {heads}"));
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_llama2_7b_is_forty_six_billion_operations() {
        let model = Model {
            parameters: Some(6_738_415_616),
            layers: Some(32),
            hidden: Some(4096),
            sequence: Some(4096),
            ..Model::default()
        };
        let flops = model.flops_per_token().expect("all is stated");
        assert!((flops - 4.687e10).abs() < 1e7, "{flops}");
        assert_eq!(Model { sequence: None, ..model }.flops_per_token(), None);
    }
}
