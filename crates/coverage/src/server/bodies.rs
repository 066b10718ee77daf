//! One budget for the bodies of all requests that are being received.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The bodies in progress. Where they hold more than the budget, the longest body of the key that holds most is given up: who
/// sends many at a time loses by it, and who sends one small body does not.
#[derive(Debug)]
struct Bodies {
    most: usize,
    held: usize,
    next: u64,
    all: BTreeMap<u64, Body>,
}

#[derive(Debug)]
struct Body {
    holder: String,
    length: usize,
    /// Dropped when it is given up.
    _given_up: oneshot::Sender<()>,
}

impl Bodies {
    fn new(most: usize) -> Self {
        Self { most, held: 0, next: 0, all: BTreeMap::new() }
    }

    fn begin(&mut self, holder: &str) -> (u64, oneshot::Receiver<()>) {
        let (given_up, wait) = oneshot::channel();
        self.next += 1;
        self.all.insert(self.next, Body { holder: holder.to_owned(), length: 0, _given_up: given_up });
        (self.next, wait)
    }

    /// A body has grown; returns whether it is still one of them.
    fn grow(&mut self, number: u64, by: usize) -> bool {
        if let Some(body) = self.all.get_mut(&number) {
            body.length += by;
            self.held += by;
        }
        while self.held > self.most {
            let mut holders = BTreeMap::<&str, usize>::new();
            for body in self.all.values() {
                *holders.entry(&body.holder).or_default() += body.length;
            }
            let worst = self.all.iter().max_by_key(|(_, b)| (holders.get(&*b.holder).copied(), b.length));
            let Some(worst) = worst.map(|(number, _)| *number) else { break };
            self.end(worst);
        }
        self.all.contains_key(&number)
    }

    fn end(&mut self, number: u64) {
        if let Some(body) = self.all.remove(&number) {
            self.held -= body.length;
        }
    }
}

/// The budget of a service.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<Mutex<Bodies>>);

impl Budget {
    /// At most this many bytes in all.
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Bodies::new(most))))
    }

    /// A body of this holder begins; the other resolves when it is given up.
    pub(super) fn begin(&self, holder: &str) -> (Part, oneshot::Receiver<()>) {
        let (number, given_up) = self.bodies().begin(holder);
        (Part { budget: self.clone(), number }, given_up)
    }

    fn bodies(&self) -> MutexGuard<'_, Bodies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body's part of the budget, returned when this is dropped.
pub(super) struct Part {
    budget: Budget,
    number: u64,
}

impl Part {
    /// More of it is there; returns whether there is room for it.
    pub(super) fn grow(&self, by: usize) -> bool {
        self.budget.bodies().grow(self.number, by)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.budget.bodies().end(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_most_gives_up_its_longest_body() {
        let mut bodies = Bodies::new(100);
        let (one, mut one_ends) = bodies.begin("a");
        let (two, _two_ends) = bodies.begin("a");
        let (other, _other_ends) = bodies.begin("b");
        assert!(bodies.grow(one, 40) && bodies.grow(two, 20) && bodies.grow(other, 40));
        assert_eq!(one_ends.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        assert!(bodies.grow(other, 10), "the other holds less");
        assert_eq!(one_ends.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(bodies.held, 70);
        assert!(!bodies.grow(other, 31), "now it holds most");
        assert!(!bodies.grow(one, 1), "it has ended");
        bodies.end(two);
        assert_eq!((bodies.held, bodies.all.len()), (0, 0));
    }
}
