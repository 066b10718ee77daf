//! Logs of Pion's `bwe-test`: RTP, RTCP and targets, a line each with its time in Unix ms (`bwe-test/logging/format.go`).
//!
//! A log does not tell which end wrote it.

use crate::Format;
use crate::input::Input;
use crate::line::{self, Unread};
use crate::recording::Recording;
use crate::schema::{Clock, Direction, Estimate, EstimateKind, Packet, Rtcp, RtcpKind, Stop};
use weir_units::{DataRate, Timestamp};

/// Longest line.
const MAX_LINE: usize = 4096;

pub(crate) fn read(format: Format, input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    out.clock = Clock::Utc;
    line::each(input, out, MAX_LINE, |out, line| {
        let text = String::from_utf8_lossy(line);
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let row = match format {
            Format::PionRtp => packet(&fields).map(|p| out.room(1).then(|| out.packets.push(p))),
            Format::PionRtcp => rtcp(&fields).map(|r| out.room(1).then(|| out.rtcp.push(r))),
            _ => target(&fields).map(|t| out.room(1).then(|| out.estimates.push(t))),
        };
        row.map(|_| ()).ok_or_else(|| Unread::columns("log"))
    })
}

fn ms(field: &str) -> Option<Timestamp> {
    field.parse().ok().map(Timestamp::from_millis)
}

/// Time, payload type, SSRC, sequence number, timestamp, marker, size, transport-wide number, and others.
fn packet(fields: &[&str]) -> Option<Packet> {
    let [at, kind, ssrc, sequence, timestamp, marker, size, transport, ..] = fields else { return None };
    Some(Packet {
        at: ms(at)?,
        number: 0,
        direction: Direction::Passing,
        ssrc: ssrc.parse().ok()?,
        sequence: sequence.parse().ok()?,
        timestamp: timestamp.parse().ok()?,
        payload_type: kind.parse().ok()?,
        marker: *marker == "true",
        size: size.parse().ok()?,
        padding: None,
        transport_sequence: transport.parse().ok(),
    })
}

/// Time and size.
fn rtcp(fields: &[&str]) -> Option<Rtcp> {
    let [at, size] = fields else { return None };
    let size = size.parse().ok()?;
    let (direction, kind) = (Direction::Passing, RtcpKind::Unread(0));
    Some(Rtcp { at: ms(at)?, number: 0, direction, sender_ssrc: 0, size, kind, fingerprint: None })
}

/// Time and rate in bit/s.
fn target(fields: &[&str]) -> Option<Estimate> {
    let [at, rate] = fields else { return None };
    let rate = DataRate::from_bps(rate.parse().ok()?);
    Some(Estimate { at: ms(at)?, kind: EstimateKind::Target, rate, loss: None, detector: None })
}

#[cfg(test)]
mod tests {
    use crate::{EstimateKind, Format, read};

    #[test]
    fn rows_have_the_columns_of_the_log() {
        let rtp = "1747225741290,102,2070638893,10476,3950019588,false,1216,0,10476,1,1,false,false\n\
                   1747225741291,102,2070638893,10477,3950019588,true,538,1,10477,1,1,false,false\n";
        let log = read("rtp", rtp.as_bytes()).expect("a log");
        assert_eq!((log.format, log.packets.len()), (Format::PionRtp, 2));
        let last = &log.packets[1];
        assert_eq!((last.sequence, last.size, last.marker, last.transport_sequence), (10_477, 538, true, Some(1)));
        assert_eq!(last.at.as_millis(), 1_747_225_741_291);
        let targets = read("cc", "1747225741356, 100000\n1747225741456, 200000\n".as_bytes()).expect("a log");
        let rates: Vec<u64> = targets.estimates.iter().map(|e| e.rate.as_bps()).collect();
        assert_eq!((rates.as_slice(), targets.estimates[0].kind), (&[100_000, 200_000][..], EstimateKind::Target));
        let rtcp = read("rtcp", "1747225742367,28\n1747225742467,28\n".as_bytes()).expect("a log");
        assert_eq!((rtcp.rtcp.len(), rtcp.rtcp[0].size), (2, 28));
    }

    #[test]
    fn a_cut_line_ends_the_log_and_is_said() {
        let log = read("rtp", "1747225741290,102,20,10476,39,false,1216,0\n1747225741291,102,20,10".as_bytes());
        let log = log.expect("a log");
        let stop = log.stop.expect("cut");
        assert_eq!((log.packets.len(), stop.offset), (1, 43));
        assert!(stop.why.contains("cut"), "{stop:?}");
    }
}
