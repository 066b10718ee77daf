//! Identifiers of agents and links.

/// Identifies an agent of one simulator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AgentId(pub(crate) u32);

impl AgentId {
    /// The agent with this index, for agents that address packets to others. If there is none, such packets are lost.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }
    /// The index; agents are numbered from 0 in the order of addition.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Identifies a link of one simulator; a link carries packets in one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub(crate) u32);

impl LinkId {
    /// The index; links are numbered from 0 in the order of addition.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
