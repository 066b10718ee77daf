//! A call's last packets as pcapng, for Wireshark and tshark.

use super::SaveError;
use crate::call::{PAYLOAD_KEPT, Packets, Record};
use std::fmt::Write as _;
use std::time::Duration;
use weir_report::pcap::{Datagram, Direction, PacketKind, Payload, PcapWriter, RTP_PORT};
use weir_units::Timestamp;

/// A call's last packets, decrypted: RTP headers with the beginning of the payload, and RTCP. Weir is 10.0.0.1, the other end
/// 10.1.0.1. The file's comment says what is missing. `time_of_day` is that of an instant of the call's clock, since 1970.
///
/// # Errors
/// A packet is longer than captures hold.
pub fn capture(
    record: &Record,
    packets: &Packets,
    time_of_day: impl Fn(Timestamp) -> Duration,
) -> Result<Vec<u8>, SaveError> {
    let time = |at| Timestamp::from_nanos(i64::try_from(time_of_day(at).as_nanos()).unwrap_or(i64::MAX));
    let mut writer = PcapWriter::on("weir", Vec::new(), &comment(record, packets), Payload::Snapped)?;
    let began = i64::try_from(record.terms.began.as_nanos()).unwrap_or(i64::MAX);
    writer.announce_media(Timestamp::from_nanos(began), 0, "a call with a browser", &media(&record.terms.formats))?;
    packets.each(|p| {
        writer.packet(&Datagram {
            now: time(p.at),
            flow: 0,
            direction: if p.sent { Direction::Forward } else { Direction::Reverse },
            kind: PacketKind::Udp,
            bytes: p.bytes,
            length: p.length,
            ecn: p.ecn,
        })
    })?;
    Ok(writer.finish()?)
}

fn comment(record: &Record, packets: &Packets) -> String {
    let (s, dropped) = (&record.snapshot, packets.dropped());
    let mut comment = format!(
        "{}, {} under {}. RTP and RTCP without their encryption, at Weir's end: what the link to the browser \
         lost is here, what the link from it lost is missing. Of RTP payloads the first {PAYLOAD_KEPT} bytes.",
        if record.terms.in_room { "A member of a room" } else { "A call with a browser" },
        s.codec,
        s.controller
    );
    // Writing to a string does not fail.
    let _ = match dropped {
        0 => write!(comment, " All {} packets.", packets.kept()),
        _ => write!(
            comment,
            " The last {} packets: {dropped} before them made room, since {} MiB are kept.",
            packets.kept(),
            packets.limit() >> 20
        ),
    };
    comment
}

/// One section with all payload types: all are on one transport.
fn media(formats: &[(u8, String)]) -> String {
    let types: Vec<String> = formats.iter().map(|f| f.0.to_string()).collect();
    let mut media = format!("m=video {RTP_PORT} RTP/AVPF {}\r\n", types.join(" "));
    for (number, format) in formats {
        let _ = write!(media, "a=rtpmap:{number} {format}\r\n");
    }
    media + "a=rtcp-mux\r\na=rtcp-rsize\r\n"
}
