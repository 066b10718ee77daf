//! The packets of a recording, a line each, for comparison with an independent decoding.
//!
//!     cargo run --release -p weir-timeline --example rows -- FILE
//!
//! RTP: `rtp`, number in the capture, SSRC, sequence number, timestamp, payload type, marker, bytes. RTCP: `rtcp`, number, bytes.
//! `tools/same-as-tshark` compares them with what tshark decodes.

use std::collections::BTreeMap;
use std::io::Write;
use weir_timeline::read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: rows FILE")?;
    let recording = read(&file, std::fs::File::open(&file)?)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for p in &recording.packets {
        let marker = u8::from(p.marker);
        let row =
            format!("{} {} {} {} {} {marker} {}", p.number, p.ssrc, p.sequence, p.timestamp, p.payload_type, p.size);
        writeln!(out, "rtp {row}")?;
    }
    // A compound in the clear has a row for each packet in it.
    let mut compounds: BTreeMap<u32, u32> = BTreeMap::new();
    recording.rtcp.iter().for_each(|r| *compounds.entry(r.number).or_default() += r.size);
    for (number, size) in compounds {
        writeln!(out, "rtcp {number} {size}")?;
    }
    Ok(out.flush()?)
}
