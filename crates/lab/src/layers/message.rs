//! Messages between the core and the sites, and sizes on the wire.

use weir_sim::AgentId;
use weir_units::DataSize;

/// A packet of any layer, with all headers.
pub(super) const PACKET: DataSize = DataSize::from_bytes(1_000);
/// An announcement: IPv4, UDP and an RTCP packet of the application's own of 16 bytes.
pub(super) const ANNOUNCEMENT: DataSize = DataSize::from_bytes(44);
/// A membership report, and what a router sends upward for it: IPv4 with the router alert, and IGMP (RFC 2236, section 2).
pub(super) const MEMBERSHIP: DataSize = DataSize::from_bytes(32);

/// The content of a packet between the core and a site. Its bytes are the simulation's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Message {
    /// A packet of a layer, with its number.
    Media(u8, u16),
    /// The site wants a layer.
    Graft(u8),
    /// It wants it no longer.
    Prune(u8),
    /// A receiver has joined a layer as an experiment.
    Announce(u8),
}

impl Message {
    pub(super) fn write(self, bytes: &mut Vec<u8>) {
        bytes.clear();
        match self {
            Self::Media(layer, sequence) => {
                let [high, low] = sequence.to_be_bytes();
                bytes.extend([0, layer, high, low]);
            }
            Self::Graft(layer) => bytes.extend([1, layer]),
            Self::Prune(layer) => bytes.extend([2, layer]),
            Self::Announce(layer) => bytes.extend([3, layer]),
        }
    }
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [0, layer, high, low] => Some(Self::Media(layer, u16::from_be_bytes([high, low]))),
            [1, layer] => Some(Self::Graft(layer)),
            [2, layer] => Some(Self::Prune(layer)),
            [3, layer] => Some(Self::Announce(layer)),
            _ => None,
        }
    }
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    pub to: AgentId,
    pub message: Message,
    /// With all headers.
    pub size: DataSize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_written() {
        let mut bytes = Vec::new();
        for m in [Message::Media(3, 65_535), Message::Graft(1), Message::Prune(16), Message::Announce(2)] {
            m.write(&mut bytes);
            assert_eq!(Message::read(&bytes), Some(m));
        }
        assert_eq!((Message::read(&[]), Message::read(&[9, 1]), Message::read(&[0, 1])), (None, None, None));
    }
}
