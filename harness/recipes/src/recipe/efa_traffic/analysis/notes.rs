//! Collects the findings of one node: devices with the same problem become one finding with a list.

use logs::efa_counters::Capture;
use metric::finding::Finding;
use std::collections::BTreeMap;

pub(super) struct Notes<'a> {
    capture: &'a Capture,
    whole: Vec<Finding>,
    devices: BTreeMap<(&'static str, &'static str), Vec<(String, String)>>,
}

/// More devices than any instance has; a longer list is a simulated folder's.
const MOST: usize = 64;

impl<'a> Notes<'a> {
    pub(super) fn new(capture: &'a Capture) -> Notes<'a> {
        Notes { capture, whole: Vec::new(), devices: BTreeMap::new() }
    }

    /// A finding of the node as a whole.
    pub(super) fn whole(&mut self, code: &str, message: String) {
        self.whole.push(Finding::new(code, message).node(&self.capture.node).file(&self.capture.file));
    }

    /// A finding of one device, with what is its own of it or nothing. Those with the same code and text become one.
    pub(super) fn device(&mut self, code: &'static str, device: &str, text: &'static str, detail: String) {
        self.devices.entry((code, text)).or_default().push((device.to_owned(), detail));
    }

    pub(super) fn finish(self) -> Vec<Finding> {
        let mut findings = self.whole;
        for ((code, text), devices) in self.devices {
            let shown = devices.iter().take(MOST).map(|(device, detail)| match detail.as_str() {
                "" => format!("`{device}`"),
                detail => format!("`{device}` ({detail})"),
            });
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = devices.len().saturating_sub(MOST);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let mut finding = Finding::new(code, format!("{text}: {shown}{more}"))
                .node(&self.capture.node)
                .file(&self.capture.file);
            if let [(device, _)] = devices.as_slice() {
                finding.part = Some(device.clone());
            }
            findings.push(finding);
        }
        findings
    }
}
