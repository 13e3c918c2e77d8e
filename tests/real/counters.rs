//! Published readings of EFA counters: the sum of the parts is the whole, where all of them were read.

use crate::corpus;
use crate::fact::Fact;
use logs::efa_counters::read_totals;
use recipes::recipe::efa_traffic::analysis::{Residual, residual};
use std::fs;

pub(crate) const FACTS: &[Fact] = &[
    (
        "a_published_sample_obeys_the_law_without_a_remainder",
        a_published_sample_obeys_the_law_without_a_remainder,
    ),
    (
        "a_published_listing_without_write_counters_cannot_be_tried",
        a_published_listing_without_write_counters_cannot_be_tried,
    ),
];

fn read(name: &str) -> Vec<u8> {
    fs::read(corpus::file(&format!("efa/{name}"))).expect("a file")
}

fn a_published_sample_obeys_the_law_without_a_remainder() {
    let text = read("p4d-efa-node-exporter-4nic.prom");
    let devices = read_totals(&text, "f").expect("it is the exporter's form");
    assert_eq!(devices.len(), 4);
    for device in &devices {
        let residual = residual(|name| device.counters.get(name).copied());
        assert_eq!(residual, Some(Residual { tx: 0, rx: 0 }), "{}", device.device);
    }
}

fn a_published_listing_without_write_counters_cannot_be_tried() {
    let text = read("excerpt-efa-hw_counters-client.txt");
    let device = &read_totals(&text, "f").expect("it is a listing")[0];
    assert_eq!(device.counters["tx_bytes"], 2);
    assert_eq!(residual(|name| device.counters.get(name).copied()), None);
}
