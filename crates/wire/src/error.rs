/// Why bytes from the network do not parse. Offsets count from the start of the datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end before the field does.
    #[error("{field} at byte {offset} needs {needed} bytes, {available} are there")]
    Truncated {
        /// The field that is cut off.
        field: &'static str,
        /// Where it starts.
        offset: usize,
        /// Bytes that it takes.
        needed: usize,
        /// Bytes that are left.
        available: usize,
    },
    /// A field has a value that its specification does not allow.
    #[error("{field} at byte {offset} is {value}, expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its offset.
        offset: usize,
        /// Its value.
        value: u64,
        /// The allowed values.
        expected: &'static str,
    },
    /// The packets are valid one by one but do not form a compound packet (RFC 3550, section 6.1).
    #[error("not a compound RTCP packet: {rule} (packet at byte {offset})")]
    Compound {
        /// The rule violated.
        rule: &'static str,
        /// Start of the packet that violates it.
        offset: usize,
    },
}
