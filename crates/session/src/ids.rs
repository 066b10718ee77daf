//! Identifiers of an endpoint's streams.

/// Names an outgoing stream of an endpoint, for as long as that lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OutgoingId(pub(crate) u16);

/// Names an incoming stream of an endpoint, for as long as that lives.
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
