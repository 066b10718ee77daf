//! Identifiers of an endpoint's streams.

/// Identifies an outgoing stream for the lifetime of its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OutgoingId(pub(crate) u16);

/// Identifies an incoming stream for the lifetime of its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IncomingId(pub(crate) u16);

impl OutgoingId {
    /// The stream that the endpoint was made with.
    pub const FIRST: Self = Self(0);
}
impl IncomingId {
    /// The stream that the endpoint was made with.
    pub const FIRST: Self = Self(0);
}
