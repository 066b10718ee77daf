//! The two ends of a flow.

/// Per-end data of a flow: its agent, or the agent's id.
#[derive(Clone, Copy)]
pub struct Ends<T> {
    /// Sends the flow's media or data.
    pub sender: T,
    /// Receives them.
    pub receiver: T,
}

impl<T> Ends<T> {
    pub(crate) fn map<U>(self, mut f: impl FnMut(T) -> U) -> Ends<U> {
        Ends { sender: f(self.sender), receiver: f(self.receiver) }
    }
}
