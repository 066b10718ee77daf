//! Turns in the binary form.

use super::{Fields, HEAD, Head, framed};
use crate::protocol::{Carries, Event, Message, PacketFate, Turn};

/// The head of an event: kind, flags, a small number, a number of 32 bits, and when.
struct EventHead {
    kind: u8,
    flags: u8,
    small: u16,
    number: u32,
    now_ns: i64,
}

/// Numbers of the kinds.
const SENT: u8 = 1;
const FEEDBACK: u8 = 2;
const REPORT: u8 = 3;
const ESTIMATE: u8 = 4;
const QUEUE: u8 = 5;
const LIMITS: u8 = 6;
const TIMER: u8 = 7;
const RTCP: u8 = 8;
const RECEIVED: u8 = 9;
const RTT: u8 = 10;
const TARGET: u8 = 11;

/// An optional field is there: `rtt_ns`, `rate_bps`, `sent_ns`.
const HAS: u8 = 1;
/// Of `received`.
const MARKER: u8 = 1 << 1;
const RECEIVED_CE: u8 = 1 << 2;
/// Of a packet in `feedback`.
const ARRIVED: u32 = 1;
const CE: u32 = 1 << 1;
const WAS_LOST: u32 = 1 << 2;
/// Bytes of a packet in `feedback`.
const PACKET: usize = 40;

impl EventHead {
    const fn of(kind: u8, now_ns: i64) -> Self {
        Self { kind, flags: 0, small: 0, number: 0, now_ns }
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend([self.kind, self.flags]);
        out.extend(self.small.to_le_bytes());
        out.extend(self.number.to_le_bytes());
        out.extend(self.now_ns.to_le_bytes());
    }
}

fn short(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn has(is: bool) -> u8 {
    if is { HAS } else { 0 }
}

fn all(numbers: &[u64], out: &mut Vec<u8>) {
    numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
}

/// Appends a turn. `configure` has no binary form: turn 0 is JSON, and it is left out here.
pub fn write_turn(turn: u64, events: &[Event], out: &mut Vec<u8>) {
    let count = events.iter().filter(|e| e.kind().is_some()).count();
    framed(count, turn, out, |out| events.iter().for_each(|e| event(e, out)));
}

fn event(event: &Event, out: &mut Vec<u8>) {
    let head = |kind| EventHead::of(kind, event.now_ns());
    match event {
        Event::Configure { .. } => {}
        Event::Sent { sequence, size_bytes, carries, probe, queued_bytes, in_flight_bytes, .. } => {
            let small = match carries {
                Carries::Media => 0,
                Carries::Padding => 1,
                Carries::Repair => 2,
                Carries::Retransmission => 3,
            };
            EventHead { small, number: *probe, ..head(SENT) }.write(out);
            all(&[*sequence, *size_bytes, *queued_bytes, *in_flight_bytes], out);
        }
        Event::Feedback { packets, in_flight_bytes, rtt_ns, .. } => {
            let number = short(packets.len() as u64);
            EventHead { flags: has(rtt_ns.is_some()), number, ..head(FEEDBACK) }.write(out);
            all(&[*in_flight_bytes, rtt_ns.unwrap_or_default() as u64], out);
            packets.iter().for_each(|p| packet(p, out));
        }
        Event::Report { fraction_lost, cumulative_lost, highest_sequence, expected, jitter_ns, rtt_ns, .. } => {
            EventHead { flags: has(rtt_ns.is_some()), ..head(REPORT) }.write(out);
            out.extend(fraction_lost.to_le_bytes());
            let (lost, jitter, rtt) = (*cumulative_lost as u64, *jitter_ns as u64, rtt_ns.unwrap_or_default() as u64);
            all(&[lost, *highest_sequence, *expected, jitter, rtt], out);
        }
        Event::Estimate { rate_bps, message, .. } => {
            let small = match message {
                Message::Remb => 0,
                Message::Tmmbr => 1,
            };
            EventHead { flags: has(rate_bps.is_some()), small, ..head(ESTIMATE) }.write(out);
            all(&[rate_bps.unwrap_or_default()], out);
        }
        Event::Queue { added_bytes, queued_bytes, oldest_age_ns, .. } => {
            head(QUEUE).write(out);
            all(&[*added_bytes, *queued_bytes, *oldest_age_ns as u64], out);
        }
        Event::Limits { floor_bps, ceiling_bps, .. } => {
            head(LIMITS).write(out);
            all(&[*floor_bps, *ceiling_bps], out);
        }
        Event::Timer { .. } => head(TIMER).write(out),
        Event::Rtcp { bytes, .. } => {
            EventHead { number: short(bytes.len() as u64), ..head(RTCP) }.write(out);
            out.extend(bytes);
            out.extend(std::iter::repeat_n(0, bytes.len().next_multiple_of(8) - bytes.len()));
        }
        Event::Received { sequence, sent_ns, size_bytes, payload_bytes, rtp_timestamp, marker, ce, .. } => {
            let flags = has(sent_ns.is_some()) | if *marker { MARKER } else { 0 } | if *ce { RECEIVED_CE } else { 0 };
            EventHead { flags, number: *rtp_timestamp, ..head(RECEIVED) }.write(out);
            all(&[*sequence, sent_ns.unwrap_or_default() as u64], out);
            out.extend(short(*size_bytes).to_le_bytes());
            out.extend(short(*payload_bytes).to_le_bytes());
        }
        Event::Rtt { rtt_ns, .. } => {
            head(RTT).write(out);
            all(&[*rtt_ns as u64], out);
        }
        Event::Target { media_bps, pacing_bps, .. } => {
            head(TARGET).write(out);
            all(&[*media_bps, *pacing_bps], out);
        }
    }
}

fn packet(p: &PacketFate, out: &mut Vec<u8>) {
    let flag = |is: bool, bit: u32| if is { bit } else { 0 };
    let flags = flag(p.arrived_ns.is_some(), ARRIVED) | flag(p.ce, CE) | flag(p.was_lost, WAS_LOST);
    all(&[p.sequence, p.sent_ns as u64, p.arrived_ns.unwrap_or_default() as u64], out);
    for n in [short(p.size_bytes), p.probe, flags, 0] {
        out.extend(n.to_le_bytes());
    }
}

/// A turn from its bytes.
///
/// # Errors
/// It has another length or number of events than its head says, or a kind, a flag or a number without a meaning.
pub fn read_turn(bytes: &[u8]) -> Result<Turn, String> {
    let head = Head::read(bytes)?;
    let mut from = Fields(&bytes[HEAD..]);
    if from.0.len() != head.length as usize {
        return Err(format!("{} bytes follow its head, which has a length of {}", from.0.len(), head.length));
    }
    let mut events = Vec::new();
    while !from.0.is_empty() {
        events.push(read_event(&mut from)?);
    }
    if events.len() != head.count as usize {
        return Err(format!("it has {} events; its head says {}", events.len(), head.count));
    }
    Ok(Turn { turn: head.turn, events })
}

fn read_event(from: &mut Fields<'_>) -> Result<Event, String> {
    let (kind, flags, small, number) = (from.u8()?, from.u8()?, from.u16()?, from.u32()?);
    let now_ns = from.i64()?;
    let known = match kind {
        FEEDBACK | REPORT | ESTIMATE => HAS,
        RECEIVED => HAS | MARKER | RECEIVED_CE,
        _ => 0,
    };
    if flags & !known != 0 {
        return Err(format!("an event of kind {kind} has the flags {flags:#x}; expected none above {known:#x}"));
    }
    let has = flags & HAS != 0;
    let unknown = || format!("an event of kind {kind} has the number {small}, which has no meaning");
    Ok(match kind {
        SENT => Event::Sent {
            now_ns,
            sequence: from.u64()?,
            size_bytes: from.u64()?,
            carries: match small {
                0 => Carries::Media,
                1 => Carries::Padding,
                2 => Carries::Repair,
                3 => Carries::Retransmission,
                _ => return Err(unknown()),
            },
            probe: number,
            queued_bytes: from.u64()?,
            in_flight_bytes: from.u64()?,
        },
        FEEDBACK => {
            let (in_flight_bytes, rtt) = (from.u64()?, from.i64()?);
            if from.0.len() / PACKET < number as usize {
                return Err(format!("a feedback of {number} packets has {} bytes for them", from.0.len()));
            }
            let packets = (0..number).map(|_| read_packet(from)).collect::<Result<_, _>>()?;
            Event::Feedback { now_ns, packets, in_flight_bytes, rtt_ns: has.then_some(rtt) }
        }
        REPORT => {
            let (fraction_lost, cumulative_lost) = (from.f64()?, from.i64()?);
            let (highest_sequence, expected) = (from.u64()?, from.u64()?);
            let (jitter_ns, rtt) = (from.i64()?, from.i64()?);
            let rtt_ns = has.then_some(rtt);
            Event::Report { now_ns, fraction_lost, cumulative_lost, highest_sequence, expected, jitter_ns, rtt_ns }
        }
        ESTIMATE => {
            let message = match small {
                0 => Message::Remb,
                1 => Message::Tmmbr,
                _ => return Err(unknown()),
            };
            let rate = from.u64()?;
            Event::Estimate { now_ns, rate_bps: has.then_some(rate), message }
        }
        QUEUE => {
            let (added_bytes, queued_bytes, oldest_age_ns) = (from.u64()?, from.u64()?, from.i64()?);
            Event::Queue { now_ns, added_bytes, queued_bytes, oldest_age_ns }
        }
        LIMITS => Event::Limits { now_ns, floor_bps: from.u64()?, ceiling_bps: from.u64()? },
        TIMER => Event::Timer { now_ns },
        RTCP => {
            let bytes = from.take(number as usize)?.to_vec();
            from.take(bytes.len().next_multiple_of(8) - bytes.len())?;
            Event::Rtcp { now_ns, bytes }
        }
        RECEIVED => {
            let (sequence, sent) = (from.u64()?, from.i64()?);
            let (size_bytes, payload_bytes) = (u64::from(from.u32()?), u64::from(from.u32()?));
            let (marker, ce) = (flags & MARKER != 0, flags & RECEIVED_CE != 0);
            let (sent_ns, rtp_timestamp) = (has.then_some(sent), number);
            Event::Received { now_ns, sequence, sent_ns, size_bytes, payload_bytes, rtp_timestamp, marker, ce }
        }
        RTT => Event::Rtt { now_ns, rtt_ns: from.i64()? },
        TARGET => Event::Target { now_ns, media_bps: from.u64()?, pacing_bps: from.u64()? },
        _ => return Err(format!("no event has the kind {kind}")),
    })
}

fn read_packet(from: &mut Fields<'_>) -> Result<PacketFate, String> {
    let (sequence, sent_ns, arrived) = (from.u64()?, from.i64()?, from.i64()?);
    let (size, probe, flags, _) = (from.u32()?, from.u32()?, from.u32()?, from.u32()?);
    if flags & !(ARRIVED | CE | WAS_LOST) != 0 {
        return Err(format!("a packet of a feedback has the flags {flags:#x}; expected none above 0x7"));
    }
    Ok(PacketFate {
        sequence,
        sent_ns,
        arrived_ns: (flags & ARRIVED != 0).then_some(arrived),
        size_bytes: size.into(),
        ce: flags & CE != 0,
        probe,
        was_lost: flags & WAS_LOST != 0,
    })
}
