//! What planning and reporting ask of a launcher. Nothing here touches the cluster.

use model::artefact::Launcher;

/// A launcher before anything is launched, by what its table says.
pub trait LaunchPlanner {
    /// Which one it is.
    fn launcher(&self) -> Launcher;

    /// What its table calls things of the site: a certificate that is published must not hold them.
    fn site_names(&self) -> Vec<&str>;

    /// What to check where no node answers: the end of the message.
    fn check_when_silent(&self) -> &'static str;

    /// Whether that answer for a node means no more than that it is busy: jobs wait for it.
    fn is_busy(&self, _answer: &str) -> bool {
        false
    }

    /// Why a simulated cluster cannot be reached so, if it cannot.
    fn refuse_simulated(&self) -> Option<&'static str> {
        None
    }

    /// So many jobs of a run are handed over at the same time; as many as nodes allow, where absent.
    fn most_jobs(&self) -> Option<u32> {
        None
    }

    /// Nodes can be taken out of its queue.
    fn drains(&self) -> bool {
        false
    }
}
