//! The faults that a pretend cluster can have, and how a person writes them: `NODE:FAULT`.
//! What each does to a job is told in the files of the pretend cluster that apply it.

use std::fmt;

/// One fault of one node. It holds for the whole run and hits every job that includes the node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeFault {
    pub node: String,
    pub fault: Fault,
}

/// `F` in the written form is the fraction of the healthy rate that is left.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    NicSlow {
        left: f64,
        device: String,
    },
    /// Listed, but its counters stand still and its flows do not connect; collectives go on without it.
    NicDead {
        device: String,
    },
    /// Not listed.
    NicMissing {
        device: String,
    },
    GpuSlow {
        left: f64,
        gpu: u32,
    },
    /// One GPU returns wrong data.
    Corrupt {
        gpu: u32,
    },
    RankDies,
    Hang,
    NodeFails,
    QueueStuck,
    Preempted,
    OutputMissing,
    Garbled,
    DiskFull,
    WrongRanks,
    ClockJump,
    /// Cut off: nsys cannot export it.
    ReportTruncated,
    ReportMissing,
    ReportEmpty,
    NsysMissing,
    NsysOld,
    /// The report says itself that it lacks events.
    EventsDropped,
    /// Over ssh: it is gone for a while in the middle of each job, and so is the answer to the start.
    ConnectionDrops,
    /// Over ssh: it never answers.
    HostUnreachable,
}

impl Fault {
    /// Every way to write a fault, for messages and the manual.
    pub const FORMS: [&'static str; 23] = [
        "nic-slow=F@DEV",
        "nic-dead@DEV",
        "nic-missing@DEV",
        "gpu-slow=F@N",
        "corrupt@N",
        "rank-dies",
        "hang",
        "node-fails",
        "queue-stuck",
        "preempted",
        "output-missing",
        "garbled",
        "disk-full",
        "wrong-ranks",
        "clock-jump",
        "report-truncated",
        "report-missing",
        "report-empty",
        "nsys-missing",
        "nsys-old",
        "events-dropped",
        "connection-drops",
        "host-unreachable",
    ];

    /// The kind alone, as it begins in the written form.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::NicSlow { .. } => "nic-slow",
            Fault::NicDead { .. } => "nic-dead",
            Fault::NicMissing { .. } => "nic-missing",
            Fault::GpuSlow { .. } => "gpu-slow",
            Fault::Corrupt { .. } => "corrupt",
            Fault::RankDies => "rank-dies",
            Fault::Hang => "hang",
            Fault::NodeFails => "node-fails",
            Fault::QueueStuck => "queue-stuck",
            Fault::Preempted => "preempted",
            Fault::OutputMissing => "output-missing",
            Fault::Garbled => "garbled",
            Fault::DiskFull => "disk-full",
            Fault::WrongRanks => "wrong-ranks",
            Fault::ClockJump => "clock-jump",
            Fault::ReportTruncated => "report-truncated",
            Fault::ReportMissing => "report-missing",
            Fault::ReportEmpty => "report-empty",
            Fault::NsysMissing => "nsys-missing",
            Fault::NsysOld => "nsys-old",
            Fault::EventsDropped => "events-dropped",
            Fault::ConnectionDrops => "connection-drops",
            Fault::HostUnreachable => "host-unreachable",
        }
    }

    /// Whether a fault of that kind can come about on nodes that are reached that way.
    pub fn happens_via(kind: &str, via: &str) -> bool {
        match kind {
            "queue-stuck" | "preempted" => via == "slurm",
            "connection-drops" | "host-unreachable" => via == "ssh",
            _ => true,
        }
    }

    /// The NIC that the fault concerns, if it concerns one.
    pub fn device(&self) -> Option<&str> {
        match self {
            Fault::NicSlow { device, .. } | Fault::NicDead { device } | Fault::NicMissing { device } => {
                Some(device)
            }
            _ => None,
        }
    }

    pub fn gpu(&self) -> Option<u32> {
        match self {
            Fault::GpuSlow { gpu, .. } | Fault::Corrupt { gpu } => Some(*gpu),
            _ => None,
        }
    }

    fn parse(text: &str) -> Result<Fault, String> {
        let (head, part) = match text.split_once('@') {
            Some((head, part)) => (head, Some(part)),
            None => (text, None),
        };
        let (kind, left) = match head.split_once('=') {
            Some((kind, left)) => (kind, Some(left)),
            None => (head, None),
        };
        let form = Fault::FORMS.iter().find(|form| form.split(['=', '@']).next() == Some(kind));
        let Some(form) = form else {
            let kinds: Vec<&str> =
                Fault::FORMS.iter().filter_map(|form| form.split(['=', '@']).next()).collect();
            let near = crate::suggest::nearest(kind, kinds.iter().copied());
            return Err(match near {
                Some(near) => format!("unknown fault, did you mean `{near}`: `{kind}`"),
                None => format!("unknown fault (there are {}): `{kind}`", kinds.join(", ")),
            });
        };
        if form.contains('=') != left.is_some()
            || form.contains('@') != part.is_some_and(|part| !part.is_empty())
        {
            return Err(format!("a `{kind}` fault is written `NODE:{form}`, not: `{text}`"));
        }
        let left = match left.map(str::parse::<f64>) {
            None => 0.0,
            Some(Ok(left)) if left > 0.0 && left < 1.0 => left,
            Some(_) => return Err(format!("the fraction left must lie between 0 and 1: `{text}`")),
        };
        let part = part.unwrap_or_default();
        let device = || part.to_owned();
        let gpu = || part.parse::<u32>().map_err(|_| format!("a GPU is a number from 0: `{text}`"));
        Ok(match kind {
            "nic-slow" => Fault::NicSlow { left, device: device() },
            "nic-dead" => Fault::NicDead { device: device() },
            "nic-missing" => Fault::NicMissing { device: device() },
            "gpu-slow" => Fault::GpuSlow { left, gpu: gpu()? },
            "corrupt" => Fault::Corrupt { gpu: gpu()? },
            "rank-dies" => Fault::RankDies,
            "hang" => Fault::Hang,
            "node-fails" => Fault::NodeFails,
            "queue-stuck" => Fault::QueueStuck,
            "preempted" => Fault::Preempted,
            "output-missing" => Fault::OutputMissing,
            "garbled" => Fault::Garbled,
            "disk-full" => Fault::DiskFull,
            "wrong-ranks" => Fault::WrongRanks,
            "clock-jump" => Fault::ClockJump,
            "report-truncated" => Fault::ReportTruncated,
            "report-missing" => Fault::ReportMissing,
            "report-empty" => Fault::ReportEmpty,
            "nsys-missing" => Fault::NsysMissing,
            "nsys-old" => Fault::NsysOld,
            "events-dropped" => Fault::EventsDropped,
            "connection-drops" => Fault::ConnectionDrops,
            _ => Fault::HostUnreachable,
        })
    }
}

impl NodeFault {
    pub fn parse(text: &str) -> Result<NodeFault, String> {
        let Some((node, fault)) = text.split_once(':') else {
            return Err(format!("a fault is written `NODE:FAULT`, such as `p5-002:hang`, not: `{text}`"));
        };
        if node.is_empty() {
            return Err(format!("a fault needs a node before the colon: `{text}`"));
        }
        Ok(NodeFault { node: node.to_owned(), fault: Fault::parse(fault)? })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NicSlow { left, device } => write!(f, "nic-slow={left}@{device}"),
            Fault::NicDead { device } | Fault::NicMissing { device } => write!(f, "{}@{device}", self.kind()),
            Fault::GpuSlow { left, gpu } => write!(f, "gpu-slow={left}@{gpu}"),
            Fault::Corrupt { gpu } => write!(f, "corrupt@{gpu}"),
            other => f.write_str(other.kind()),
        }
    }
}

impl fmt::Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_written_form_is_read_and_written_back() {
        for form in Fault::FORMS {
            let text = format!(
                "p5-002:{}",
                form.replace('F', "0.4").replace("DEV", "rdmap113s0").replace("@N", "@3")
            );
            assert_eq!(NodeFault::parse(&text).map(|fault| fault.to_string()), Ok(text));
        }
    }

    #[test]
    fn a_mistake_is_told_with_the_form_that_is_right() {
        let mistakes = [
            ("hang", "NODE:FAULT"),
            (":hang", "needs a node"),
            ("p5-002:hnag", "did you mean `hang`"),
            ("p5-002:nic-slow@rdmap113s0", "NODE:nic-slow=F@DEV"),
            ("p5-002:nic-slow=1.5@rdmap113s0", "between 0 and 1"),
            ("p5-002:nic-slow=NaN@rdmap113s0", "between 0 and 1"),
            ("p5-002:nic-dead", "NODE:nic-dead@DEV"),
            ("p5-002:hang@3", "NODE:hang"),
            ("p5-002:corrupt@x", "a GPU is a number"),
        ];
        for (text, told) in mistakes {
            let message = NodeFault::parse(text).expect_err(text);
            assert!(message.contains(told), "{text}: {message}");
        }
    }
}
