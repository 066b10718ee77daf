//! Contents of captures at the ends of a lossy path and behind its bottleneck.

use pcap_file::pcapng::blocks::section_header::SectionHeaderOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::run::{CapturePoint, RunOptions, run};
use weir_lab::scenario::ScenarioFile;
use weir_report::capture::{self, CaptureOptions};

const SCENARIO: &str = r#"
title = "One call on a link that loses"
duration = "20 s"

[links.bottleneck]
rate = "2 Mbps"
delay = "50 ms"
queue = "100 ms"
loss = 0.05
reverse = { rate = "2 Mbps", delay = "50 ms", loss = 0.2 }

[rtp.call]
controller = "gcc"
"#;

/// Times in ns of the RTP packets of media and of the packets of feedback in a capture, and the comment of the file.
fn packets(file: &Path) -> (Vec<u128>, Vec<u128>, String) {
    let mut reader = PcapNgReader::new(std::fs::File::open(file).expect("written")).expect("pcapng");
    let comment = reader.section().options.iter().find_map(|o| match o {
        SectionHeaderOption::Comment(text) => Some(text.to_string()),
        _ => None,
    });
    let (mut media, mut feedback) = (vec![], vec![]);
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(p) = block.expect("a block") else { continue };
        // Ports after the IP header: what announces the flow goes to another.
        if p.data[22..24] != 5004u16.to_be_bytes() {
            continue;
        }
        let is_rtcp = (192..=223).contains(&p.data[29]);
        match (p.data[13], is_rtcp) {
            (0, false) => media.push(p.timestamp.as_nanos()),
            (1, _) => feedback.push(p.timestamp.as_nanos()),
            _ => {}
        }
    }
    (media, feedback, comment.expect("a comment"))
}

#[test]
fn each_point_sees_what_passes_it() {
    let registry = Registry::builtin();
    let file = ScenarioFile::parse("lossy", SCENARIO, Path::new("."), &registry).expect("a scenario");
    let scenario = file.scenario(None, None, &registry).expect("without variants");
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let result = run(&scenario, 1, &options).expect("runs");
    let counts = result.flows[0].packets;
    assert!(counts.dropped_channel > 50, "{counts:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let at = |point, name: &str| {
        let path = folder.path().join(name);
        capture::write(&scenario, 1, &options, &path, CaptureOptions { at: point, zeros: false }).expect("written");
        packets(&path)
    };
    let (sent, reports_in, at_sender) = at(CapturePoint::Sender, "sender");
    let (received, reports_out, at_receiver) = at(CapturePoint::Receiver, "receiver");
    let (behind, reports_back, at_link) = at(CapturePoint::Link, "link");
    assert_eq!((sent.len() as u64, received.len() as u64), (counts.sent, counts.received));
    // The bottleneck is the only link: what comes out of it arrives there and then.
    assert_eq!(behind, received);
    assert_eq!(reports_back.len(), reports_out.len());
    // A fifth of the feedback is lost on its way to the sender.
    let share = reports_in.len() as f64 / reports_out.len() as f64;
    assert!((0.7..0.9).contains(&share), "{share}");
    // 50 ms and the transmission lie between the ends.
    assert!(received[0] - sent[0] >= 50_000_000 && reports_in[0] - reports_out[0] >= 50_000_000);
    assert!(at_sender.contains("captured at the media sender") && at_sender.contains("lossy"));
    assert!(at_receiver.contains("captured at the media receiver") && at_receiver.contains("seed 1"));
    assert!(at_link.contains("captured behind the link `bottleneck`"));
}
