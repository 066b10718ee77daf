//! Captures of a call at both of its ends, made by a rule.

use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtcp::twcc;

/// Captured bytes of a packet, as captures of encrypted calls are cut.
const SNAP: usize = 108;
const LEFT: [u8; 4] = [10, 0, 0, 1];
const RIGHT: [u8; 4] = [10, 1, 0, 1];
/// Numbers of hops that systems begin with, and behind two routers.
const FRESH: u8 = 64;
const ROUTED: u8 = 62;
/// Way from one end to the other.
const WAY: TimeDelta = TimeDelta::from_millis(20);

/// A capture file that grows.
struct Capture {
    bytes: Vec<u8>,
    own: [u8; 4],
}

impl Capture {
    /// Of libpcap, with link type 101 (raw IP).
    fn new(own: [u8; 4]) -> Self {
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend((SNAP as u32).to_le_bytes());
        bytes.extend(101u32.to_le_bytes());
        Self { bytes, own }
    }

    /// Adds an IPv4 packet of UDP.
    fn add(&mut self, at: Timestamp, left: bool, payload: &[u8]) {
        let (from, to) = if left { (LEFT, RIGHT) } else { (RIGHT, LEFT) };
        let hops = if from == self.own { FRESH } else { ROUTED };
        let ports: [u16; 2] = if left { [5000, 6000] } else { [6000, 5000] };
        let mut ip = vec![0x45, 0];
        ip.extend((28 + payload.len() as u16).to_be_bytes());
        ip.extend([0, 0, 0, 0, hops, 17, 0, 0]);
        ip.extend(from.into_iter().chain(to));
        for word in [ports[0], ports[1], 8 + payload.len() as u16, 0] {
            ip.extend(word.to_be_bytes());
        }
        ip.extend(payload);
        let us = at.as_micros();
        let captured = ip.len().min(SNAP);
        for word in [1_700_000_000 + (us / 1_000_000) as u32, (us % 1_000_000) as u32, captured as u32, ip.len() as u32]
        {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(&ip[..captured]);
    }
}

/// RTP with the transport-wide number in the header extension 5, of 1,250 bytes.
fn rtp(number: u16) -> Vec<u8> {
    let mut out = vec![0x90, 0x80 | 96];
    out.extend(number.to_be_bytes());
    out.extend((u32::from(number) * 900).to_be_bytes());
    out.extend([0, 0, 0, 7, 0xbe, 0xde, 0, 1, 0x51]);
    out.extend(number.to_be_bytes());
    out.push(0);
    out.resize(1250, 0xaa);
    out
}

/// The captures at the left and the right end of a call of so many seconds with so many packets a second. From the middle on each
/// ninth packet is lost by chance, and 2 s later half as many are sent. Feedback on all of them comes each 50 ms or so, in the clear.
pub(crate) fn call(seconds: u32, per_second: u32) -> [Vec<u8>; 2] {
    let (mut left, mut right) = (Capture::new(LEFT), Capture::new(RIGHT));
    let (mut number, mut count, mut waiting) = (0u32, 0u8, Vec::new());
    let each = (per_second / 20).max(1);
    let halved = (f64::from(seconds) / 2.0 + 2.0) * f64::from(per_second);
    for i in 0..seconds * per_second {
        let at = Timestamp::from_secs_f64(f64::from(i) / f64::from(per_second));
        if f64::from(i) > halved && i % 2 == 1 {
            continue;
        }
        let lost = f64::from(i) > halved - 2.0 * f64::from(per_second) && number % 9 == 4;
        let packet = rtp(number as u16);
        left.add(at, true, &packet);
        if !lost {
            right.add(at + WAY, true, &packet);
        }
        waiting.push((number as u16, (!lost).then_some(at + WAY)));
        if i % each == 0 {
            let mut message = twcc::Builder::new(9, 7, count, waiting[0].0, at + WAY);
            assert!(waiting.drain(..).all(|(number, arrival)| message.push(number, arrival)), "fits");
            let mut bytes = Vec::new();
            assert!(message.finish_into(&mut bytes));
            let now = at + WAY + TimeDelta::from_millis(1);
            right.add(now, false, &bytes);
            left.add(now + WAY, false, &bytes);
            count = count.wrapping_add(1);
        }
        number += 1;
    }
    [left.bytes, right.bytes]
}
