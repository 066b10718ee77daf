//! Transport-wide feedback as `rtpsession` reports it: an upstream event for each message.

use core::time::Duration;
use gst::glib;
use weir_units::Timestamp;

/// Name of the event's structure.
pub(super) const EVENT: &str = "RTPTWCCPackets";
/// Part of the header extension's URI that carries transport-wide numbers.
const EXTENSION: &str = "transport-wide-cc";
/// Most packets read of one event: a message counts its packets in 16 bits.
const MAX_PACKETS: usize = 1 << 16;

/// A packet in a feedback message that `rtpsession` recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reported {
    /// When `rtpsession` got it, by the system clock.
    pub departure: Timestamp,
    /// Bytes of its payload.
    pub payload: u32,
    /// By the receiver's clock; `None` if lost.
    pub arrival: Option<Duration>,
}

/// Whether caps name the header extension, without which no feedback comes.
pub(super) fn is_promised(caps: &gst::CapsRef) -> bool {
    let mut fields = caps.iter().flat_map(|s| s.iter());
    fields.any(|(_, value)| value.get::<String>().is_ok_and(|v| v.contains(EXTENSION)))
}

/// The packets of an event, in the order of sending; those that `rtpsession` has no departure for are left out, since nothing
/// can be measured on them. `None` if it is no such event.
pub(super) fn read(structure: &gst::StructureRef) -> Option<Vec<Reported>> {
    structure.get::<glib::ValueArray>("packets").ok().map(|packets| all(&packets))
}

fn all(packets: &[glib::Value]) -> Vec<Reported> {
    let structures = packets.iter().take(MAX_PACKETS).filter_map(|value| value.get::<gst::Structure>().ok());
    structures.filter_map(|packet| one(&packet)).collect()
}

fn one(packet: &gst::StructureRef) -> Option<Reported> {
    // Times are unsigned, and all ones where there is none; GStreamer's type for them is plain in 1.22.
    let time = |field| packet.get::<u64>(field).ok().filter(|t| *t != u64::MAX);
    let departure = Timestamp::from_nanos(i64::try_from(time("local-ts")?).ok()?);
    let payload = packet.get("size").ok()?;
    let arrival = match packet.get("lost").ok()? {
        true => None,
        false => Some(Duration::from_nanos(time("remote-ts")?)),
    };
    Some(Reported { departure, payload, arrival })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gst::prelude::ToValue;

    #[test]
    fn malformed_events_and_packets_are_passed_over() {
        gst::init().expect("GStreamer");
        let packet = |local: u64, remote: u64, lost: bool| {
            gst::Structure::builder("RTPTWCCPacket")
                .field("seqnum", 7u32)
                .field("local-ts", local)
                .field("remote-ts", remote)
                .field("size", 1_000u32)
                .field("lost", lost)
                .build()
        };
        let structures = [
            packet(5_000, 9_000, false),
            packet(6_000, u64::MAX, true),
            // Neither a departure, nor an arrival, nor a time that fits.
            packet(u64::MAX, 9_000, false),
            packet(7_000, u64::MAX, false),
            packet(u64::MAX - 1, 9_000, false),
            gst::Structure::new_empty("RTPTWCCPacket"),
        ];
        let mut values: Vec<glib::Value> = structures.iter().map(|s| s.to_value()).collect();
        values.push(3i32.to_value());
        let of = |departure, arrival| Reported { departure: Timestamp::from_nanos(departure), payload: 1_000, arrival };
        assert_eq!(all(&values), [of(5_000, Some(Duration::from_nanos(9_000))), of(6_000, None)]);
        assert_eq!(read(&gst::Structure::new_empty(EVENT)), None);
        assert_eq!(read(&gst::Structure::builder(EVENT).field("packets", 3i32).build()), None);
    }
}
