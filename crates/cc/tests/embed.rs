//! The example of a controller inside an RTP stack of one's own works as documented.

#[path = "../examples/embed.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the example is a program: its main is not called here, and nothing is exported"
)]
mod example;

use example::{Format, Second, call};
use weir_cc::Sender;
use weir_cc::units::Timestamp;

/// Mean media rate and queue over these seconds.
fn mean(seconds: &[Second]) -> (f64, f64) {
    let n = seconds.len() as f64;
    (seconds.iter().map(|s| s.media_kbps).sum::<f64>() / n, seconds.iter().map(|s| s.queue_ms).sum::<f64>() / n)
}

fn follows_the_link(controller: impl Into<Sender>, format: Format) {
    let seconds = call(controller, format).expect("its own bytes are sound");
    for (span, capacity) in [(10..20, 1_000.0), (30..40, 500.0), (50..60, 1_000.0)] {
        let (kbps, queue) = mean(&seconds[span.clone()]);
        assert!((0.5 * capacity..=1.05 * capacity).contains(&kbps), "{format:?} {span:?}: {kbps} kbit/s");
        assert!(queue < 100.0, "{format:?} {span:?}: {queue} ms");
    }
}

#[test]
fn gcc_follows_the_link_by_twcc() {
    follows_the_link(example::gcc(Timestamp::ZERO).expect("valid"), Format::Twcc);
}

#[test]
fn nada_follows_the_link_by_reports_of_ones_own() {
    follows_the_link(example::nada(Timestamp::ZERO).expect("valid"), Format::Own);
}

#[test]
fn feedback_of_packets_never_sent_is_no_panic() {
    let mut sender = example::MediaSender::new(example::gcc(Timestamp::ZERO).expect("valid"), Timestamp::ZERO);
    let report = example::OwnReport { number: u64::MAX, arrived_us: Some(i64::MAX), is_marked: true };
    sender.on_report(Timestamp::from_millis(1), &[report]);
    let mut bytes = Vec::new();
    let mut builder = weir_wire::rtcp::twcc::Builder::new(1, 2, 0, 7, Timestamp::ZERO);
    assert!(builder.push(7, Some(Timestamp::ZERO)));
    builder.finish_into(&mut bytes);
    sender.on_rtcp(Timestamp::from_millis(2), &bytes).expect("well-formed");
    assert!(sender.on_rtcp(Timestamp::from_millis(3), &bytes[..10]).is_err());
    assert_eq!(sender.media_rate().as_bps(), 300_000);
}
