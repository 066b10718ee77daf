//! Recordings of calls, of every format: an error, or rows within bounds and in order of time.
#![no_main]

use weir_timeline::{Call, lint, read, why};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(recording) = read("fuzz", data) else { return };
    // Eight rows a byte of a batch: each has at least one bit. Compressed bytes may be a thousand times as many.
    let compressed = data.starts_with(&[0x1f, 0x8b]);
    assert!(compressed || recording.packets.len() <= 8 * data.len());
    assert!(recording.packets.is_sorted_by_key(|p| p.at) && recording.rtcp.is_sorted_by_key(|r| r.at));
    let _ = recording.span();
    let counts = recording.counts();
    let all = counts.sent.saturating_add(counts.received).saturating_add(counts.passing);
    assert!(all >= recording.packets.len() as u64);
    if let Some(stop) = &recording.stop {
        assert!(!stop.why.is_empty());
    }
    for finding in lint::lint(&recording) {
        assert!(finding.count > 0 && !finding.packets.is_empty());
    }
    for episode in why::explain(&Call::new(vec![recording])).episodes {
        assert!(episode.from_ms <= episode.to_ms && !episode.causes.is_empty());
        assert!(episode.causes.iter().all(|c| (0.0..=1.0).contains(&c.confidence)));
    }
});
