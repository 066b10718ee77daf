//! `rtpdump`, its binary format: a line of text, a header of 16 bytes, and records of RTP and RTCP packets.

use crate::input::{Input, Taken};
use crate::recording::Recording;
use crate::rtcp;
use crate::schema::{Clock, Direction, Packet, Stop};
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    let mut bytes = Vec::new();
    let offset = input.offset();
    let stop = |offset, why: &str| Some(Stop { offset, why: why.into() });
    if !matches!(input.line(256, &mut bytes), Taken::Whole) || !matches!(input.take(16, &mut bytes), Taken::Whole) {
        return stop(offset, "the file ends within its header");
    }
    let word = |b: &[u8], at: usize| u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
    out.clock = Clock::Utc;
    let start = Timestamp::from_secs(word(&bytes, 0).into()) + TimeDelta::from_micros(word(&bytes, 4).into());
    let mut rtcp = rtcp::Reader::default();
    loop {
        let (offset, cost) = (input.offset(), out.cost());
        match input.take(8, &mut bytes) {
            Taken::Whole => {}
            Taken::End => return None,
            Taken::Cut(why) => return stop(offset, &why),
        }
        // Length of the record with these 8 bytes, of the packet (0: RTCP), and the time since the start in ms.
        let (length, packet) = (u16::from_be_bytes([bytes[0], bytes[1]]), u16::from_be_bytes([bytes[2], bytes[3]]));
        let at = start + TimeDelta::from_millis(word(&bytes, 4).into());
        let Some(captured) = length.checked_sub(8) else { return stop(offset, "a record shorter than its header") };
        if !matches!(input.take(captured.into(), &mut bytes), Taken::Whole) && captured > 0 {
            return stop(offset, "the file ends within a record");
        }
        if packet == 0 {
            rtcp.read(out, at, Direction::Received, &bytes);
        } else if let Ok(view) = PacketView::parse_header(&bytes) {
            if out.room(1) {
                out.packets.push(Packet {
                    at,
                    number: 0,
                    direction: Direction::Received,
                    ssrc: view.ssrc(),
                    sequence: view.sequence(),
                    timestamp: view.timestamp(),
                    payload_type: view.payload_type(),
                    marker: view.marker(),
                    size: packet.into(),
                    padding: None,
                    transport_sequence: None,
                });
            }
        } else {
            out.fault("packets that are not RTP");
        }
        out.charge(cost);
        if let Some(why) = out.full() {
            return stop(offset, &why);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Format, read};

    #[test]
    fn records_have_times_after_the_start() {
        let mut file = b"#!rtpplay1.0 10.0.0.1/5004\n".to_vec();
        for word in [1_700_000_000u32, 500_000, 0x0a00_0001, 5004 << 16] {
            file.extend(word.to_be_bytes());
        }
        let rtp = [0x80, 0xe0, 0, 7, 0, 0, 0, 90, 0, 0, 0, 5, 1, 2, 3, 4];
        file.extend([0, 24, 0, 16, 0, 0, 0, 250]);
        file.extend(rtp);
        let dump = read("dump", file.as_slice()).expect("a dump");
        assert_eq!((dump.format, dump.packets.len(), dump.stop.clone()), (Format::RtpDump, 1, None));
        let packet = &dump.packets[0];
        assert_eq!(
            (packet.at.as_millis(), packet.sequence, packet.size, packet.marker),
            (1_700_000_000_750, 7, 16, true)
        );
        let cut = read("dump", &file[..file.len() - 3]).expect("a dump");
        assert_eq!((cut.packets.len(), cut.stop.expect("cut").offset), (0, 43));
    }
}
