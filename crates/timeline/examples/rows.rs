//! The rows of a recording, a line each, for comparison with an independent decoding.
//!
//!     cargo run --release -p weir-timeline --example rows -- FILE [--all]
//!
//! RTP: `rtp`, number in the capture, SSRC, sequence number, timestamp, payload type, marker, bytes. RTCP: `rtcp`, number, bytes.
//! `tools/same-as-tshark` compares them with what tshark decodes. With `--all` each row of the tables of packets, RTCP, feedback, report
//! blocks, estimates and probes: its time in ns, its way and its numbers, which `tools/same-as-getstats` compares with event logs and
//! with `getStats()`.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use weir_timeline::{Direction, EstimateKind, ProbeStep, Recording, RtcpKind, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: rows FILE [--all]")?;
    let recording = read(&file, std::fs::File::open(&file)?)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if std::env::args().nth(2).as_deref() == Some("--all") {
        all(&recording, &mut out)
    } else {
        packets(&recording, &mut out)
    }?;
    Ok(out.flush()?)
}

fn packets(of: &Recording, out: &mut impl Write) -> io::Result<()> {
    for p in &of.packets {
        let marker = u8::from(p.marker);
        let row =
            format!("{} {} {} {} {} {marker} {}", p.number, p.ssrc, p.sequence, p.timestamp, p.payload_type, p.size);
        writeln!(out, "rtp {row}")?;
    }
    // A compound in the clear has a row for each packet in it.
    let mut compounds: BTreeMap<u32, u32> = BTreeMap::new();
    of.rtcp.iter().for_each(|r| *compounds.entry(r.number).or_default() += r.size);
    compounds.into_iter().try_for_each(|(number, size)| writeln!(out, "rtcp {number} {size}"))
}

const fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Sent => "sent",
        Direction::Received => "received",
        Direction::Passing => "passing",
    }
}

fn all(of: &Recording, out: &mut impl Write) -> io::Result<()> {
    for p in &of.packets {
        let (at, way, marker) = (p.at.as_nanos(), way(p.direction), u8::from(p.marker));
        let numbers = (p.ssrc, p.sequence, p.timestamp, p.payload_type);
        let transport = p.transport_sequence.map_or(-1, i32::from);
        let (ssrc, sequence, timestamp, kind) = numbers;
        writeln!(out, "packet {at} {way} {ssrc} {sequence} {timestamp} {kind} {marker} {} {transport}", p.size)?;
    }
    for r in &of.rtcp {
        let kind = match r.kind {
            RtcpKind::SenderReport => "sr".to_owned(),
            RtcpKind::ReceiverReport => "rr".to_owned(),
            RtcpKind::Twcc { count } => format!("twcc {count}"),
            RtcpKind::Ccfb => "ccfb".to_owned(),
            RtcpKind::Nack(packets) => format!("nack {packets}"),
            RtcpKind::Pli => "pli".to_owned(),
            RtcpKind::Fir => "fir".to_owned(),
            RtcpKind::Unread(n) => format!("unread {n}"),
            _ => "other".to_owned(),
        };
        writeln!(out, "rtcp {} {} {} {} {kind}", r.at.as_nanos(), way(r.direction), r.sender_ssrc, r.size)?;
    }
    for r in &of.reported {
        let (at, arrived) = (r.at.as_nanos(), u8::from(r.arrival.is_some()));
        writeln!(out, "reported {at} {} {} {arrived}", way(r.direction), r.sequence)?;
    }
    for b in &of.blocks {
        let share = (b.fraction_lost * 256.0).round() as u32;
        writeln!(out, "block {} {} {} {} {share}", b.at.as_nanos(), way(b.direction), b.ssrc, b.lost)?;
    }
    for e in &of.estimates {
        let kind = match e.kind {
            EstimateKind::Delay => "delay",
            EstimateKind::Loss => "loss",
            _ => "other",
        };
        writeln!(out, "estimate {} {kind} {}", e.at.as_nanos(), e.rate.as_bps())?;
    }
    for p in &of.probes {
        let step = match p.step {
            ProbeStep::Made { .. } => "made",
            ProbeStep::Succeeded => "succeeded",
            ProbeStep::Failed(_) => "failed",
        };
        let rate = p.rate.map_or(-1, |r| r.as_bps() as i64);
        writeln!(out, "probe {} {step} {} {rate}", p.at.as_nanos(), p.id)?;
    }
    Ok(())
}
