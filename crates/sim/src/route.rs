//! Routes between two agents.

use crate::ids::LinkId;

/// The links between two agents, in each direction in the order of packets.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Route {
    /// From the first agent to the second.
    pub forward: Vec<LinkId>,
    /// From the second agent back to the first.
    pub reverse: Vec<LinkId>,
}

impl Route {
    /// This route followed by `next`.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        Self {
            forward: [&self.forward[..], &next.forward].concat(),
            reverse: [&next.reverse[..], &self.reverse].concat(),
        }
    }

    /// The same links from the other side.
    #[must_use]
    pub fn turned(&self) -> Self {
        Self { forward: self.reverse.clone(), reverse: self.forward.clone() }
    }
}
