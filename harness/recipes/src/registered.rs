//! Registries that grow while a process runs, beside what is built in; nothing is removed.

use std::sync::{PoisonError, RwLock};

pub(crate) struct Registered<T: 'static> {
    all: RwLock<Vec<&'static T>>,
    name: fn(&T) -> &str,
}

impl<T> Registered<T> {
    pub(crate) const fn by(name: fn(&T) -> &str) -> Registered<T> {
        Registered { all: RwLock::new(Vec::new()), name }
    }

    /// In the order of their names.
    pub(crate) fn all(&self) -> Vec<&'static T> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add(&self, one: &'static T) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.push(one);
        all.sort_by(|a, b| (self.name)(a).cmp((self.name)(b)));
    }
}
