//! The machine that the harness runs on, where a scheduler's commands can be called on another only: what is asked of
//! this machine is asked of that one, over its one connection.

use super::sink::Sink;
use super::{Answer, Command, Host, Reach, ReachError, Wait};

/// Nodes are reached as by `of`.
pub struct AtLogin<R> {
    of: R,
    login: Host,
}

impl<R> AtLogin<R> {
    /// `login` is the host that stands for this machine.
    pub fn new(of: R, login: &str) -> AtLogin<R> {
        AtLogin { of, login: Host::Node(login.to_owned()) }
    }

    /// The reach below this one.
    pub fn inner(&self) -> &R {
        &self.of
    }

    fn host<'a>(&'a self, host: &'a Host) -> &'a Host {
        match host {
            Host::Here => &self.login,
            Host::Node(_) => host,
        }
    }
}

impl<R: Reach> Reach for AtLogin<R> {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        self.of.exec(self.host(host), command)
    }

    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        self.of.put(self.host(host), path, bytes)
    }

    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        self.of.get(self.host(host), path)
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Host,
        path: &'a str,
        sink: &'a mut dyn Sink,
    ) -> Wait<'a, Result<u64, ReachError>> {
        self.of.fetch(self.host(host), path, sink)
    }

    fn remove<'a>(
        &'a self,
        host: &'a Host,
        folder: &'a str,
        names: &'a [String],
    ) -> Wait<'a, Result<(), ReachError>> {
        self.of.remove(self.host(host), folder, names)
    }
}
