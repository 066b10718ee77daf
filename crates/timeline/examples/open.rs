//! Opens the recordings of a call and prints them, their episodes and findings as JSON: `open FILE...`
//!
//!     cargo run -p weir-timeline --example open -- left.pcap.gz right.pcap.gz

use serde_json::json;
use std::fs::File;
use weir_timeline::{Call, lint, read, why};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = std::env::args().skip(1).filter(|a| !a.starts_with("--") && a != "open");
    let recordings = files.map(|path| Ok(read(&path, File::open(&path)?)?));
    let call = Call::new(recordings.collect::<Result<_, Box<dyn std::error::Error>>>()?);
    let sources = call.recordings.iter().map(|r| {
        let counts = r.counts();
        json!({
            "path": r.name,
            "format": r.format,
            "packets": { "sent": counts.sent, "received": counts.received, "passing": counts.passing, "lost": counts.lost },
            "rows": { "rtcp": r.rtcp.len(), "reported": r.reported.len(), "estimates": r.estimates.len(), "series": r.series.len() },
            "faults": r.faults,
            "guessed": r.guessed,
            "stop": r.stop.as_ref().map(|s| format!("{} at byte {}", s.why, s.offset)),
        })
    });
    let report = json!({ "sources": sources.collect::<Vec<_>>(), "episodes": why::explain(&call).episodes,
        "findings": call.recordings.iter().flat_map(lint::lint).collect::<Vec<_>>() });
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}
