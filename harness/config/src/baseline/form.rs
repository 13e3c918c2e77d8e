//! The forms of a file of baselines.

use super::read::{BETTERS, STATES};
use crate::form::{Form, Key, Type, names, units};
use crate::suite::PLACEMENTS;
use metric::op::Op;

/// A file of `baselines`.
pub(crate) fn file() -> Form {
    Form::new([
        Key::needed("instance", Type::Text, "as the file is called: `p5`, `sim-p5`"),
        Key::usual(
            "simulated",
            "false",
            Type::Boolean,
            "true for simulated instances; a real inventory never loads those",
        ),
        Key::usual(
            "between_sizes",
            "false",
            Type::Boolean,
            "true: a size that was not measured is judged by its neighbours, as provisional, with wider bounds; never between numbers of nodes",
        ),
        Key::optional("baseline", Type::tables(baseline()), "what was measured, each metric under its key"),
    ])
}

/// `[[baseline]]`.
pub(super) fn baseline() -> Form {
    let metrics = Type::OneOf(|catalogue| {
        let mut names: Vec<String> = catalogue.metrics().map(|metric| metric.name.to_string()).collect();
        names.sort();
        names.dedup();
        names
    });
    let text = |name, about| Key::optional(name, Type::Text, about);
    let number = |name, about| Key::optional(name, Type::Number, about);
    let version = Type::Either(vec![Type::Text, Type::texts()]);
    Form::new([
        Key::needed("metric", metrics, "what was measured"),
        Key::optional(
            "op",
            Type::OneOf(|_| Op::ALL.iter().map(|op| op.name().to_owned()).collect()),
            "of the key: the operation",
        ),
        Key::optional("size", Type::Size, "of the key: a size of the sweep"),
        Key::optional("nodes", Type::WHOLE, "of the key: nodes of one job"),
        Key::optional("ranks", Type::WHOLE, "of the key: ranks of a communicator"),
        Key::optional(
            "placement",
            Type::OneOf(|_| PLACEMENTS.map(str::to_owned).to_vec()),
            "of the key: how jobs lie beside each other; any, where absent",
        ),
        text("training", "of the key: which training, by the name of its case"),
        text("type", "of the key: the elements, where they are not `float`"),
        text("algorithm", "of the key: NCCL's algorithm, where the suite fixes one"),
        text("protocol", "of the key: `NCCL_PROTO`, where the case sets it"),
        text("runner", "of the key: `torch` where PyTorch ran the collective; nccl-tests, where absent"),
        text("kernel", "of the key: the kernel, or the class of kernels"),
        Key::needed("unit", Type::OneOf(units), "the metric's own"),
        Key::usual("better", "the metric's", Type::OneOf(|_| names(&BETTERS)), "the metric's own direction"),
        Key::needed(
            "state",
            Type::OneOf(|_| STATES.map(|state| state.name().to_owned()).to_vec()),
            "`accepted`: a number outside the bounds fails; `provisional`: a warning only; `expired`: compared with nothing",
        ),
        Key::needed(
            "samples",
            Type::list(Type::Number),
            "one for each run, its median, or the published figures",
        ),
        number("lower", "the bound in force, where a number can be too low"),
        number("upper", "the bound in force, where a number can be too high"),
        number("floor", "of published figures: below it a number fails on day one"),
        text("floor_source", "by which rule, and from which figures"),
        number("spread", "what the bounds were made of: relative standard deviation"),
        number("freedom", "the same: degrees of freedom"),
        Key::optional("judged", Type::WHOLE, "the same: how many numbers are judged at once"),
        text("pack", "the same: the key of the site whose pack helped"),
        number("pack_worth", "the same: with the pack the median is known as by so many runs"),
        Key::optional("quantiles", Type::list(Type::Number), "of many samples their 5, 25, 75 and 95 %"),
        Key::optional(
            "fingerprint",
            Type::map(version),
            "the software that must be the same: `nccl`, `image`, `variables`, `driver`, `cuda`, `libfabric`, `efa_installer`, `ofi_nccl`, `kernel`, `nsys`",
        ),
        Key::usual("runs", "[]", Type::texts(), "which runs it was made from"),
        Key::needed("source", Type::Text, "who published it, or what measured it"),
        text("accepted_by", "the review: who accepted it"),
        text("rejected_by", "the review of a pending one: who rejected it"),
        text("reason", "the review: why"),
        text("date", "`2026-11-21`: day of the newest run, or of the review"),
    ])
}
