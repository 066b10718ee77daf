/// Why bytes from the network are not the packet they were taken for. Offsets count from the start of the datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end before a field does.
    #[error("{field} at byte {offset} needs {needed} bytes, {available} are there")]
    Truncated {
        /// The field that is cut short.
        field: &'static str,
        /// Where it starts.
        offset: usize,
        /// Bytes that it takes.
        needed: usize,
        /// Bytes that are left.
        available: usize,
    },
    /// A field holds what its specification does not allow.
    #[error("{field} at byte {offset} is {value}, expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// Where it stands.
        offset: usize,
        /// What it holds.
        value: u64,
        /// What it may hold.
        expected: &'static str,
    },
    /// The packets are sound one by one and do not make a compound packet (RFC 3550, section 6.1).
    #[error("not a compound RTCP packet: {rule} (packet at byte {offset})")]
    Compound {
        /// The rule that is broken.
        rule: &'static str,
        /// The start of the packet that breaks it.
        offset: usize,
    },
}
