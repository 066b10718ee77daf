//! All that arrives is reported, of whatever source it is.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use weir_cc::{FeedbackFormat, FeedbackPlan};
use weir_session::allocation::MediaKind;
use weir_session::{Datagram, EndConfig, EndPlan, Endpoint, IncomingConfig, ReceivingPath, StreamIdentity};
use weir_units::{Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::ccfb::Metric;
use weir_wire::rtcp::{Packet, parse_compound};
use weir_wire::rtp::Header;
use weir_wire::rtp::extension::Element;

fn end(format: FeedbackFormat) -> Endpoint {
    let interval = TimeDelta::from_millis(50);
    let plan = FeedbackPlan { format, min_interval: interval, max_interval: interval, bandwidth_share: 0.05 };
    let config = EndConfig { ssrc: 22, remote_ssrc: 11, ..EndConfig::default() };
    let incoming = IncomingConfig::new(StreamIdentity::of(11), MediaKind::default());
    let receiving = ReceivingPath { feedback: Some(plan), ..ReceivingPath::default() };
    EndPlan::new(config).receives(incoming).on(receiving).make(Timestamp::ZERO).unwrap()
}

/// Packets reported received: by number, or by source and number.
#[derive(Default)]
struct Reported {
    numbers: BTreeSet<u16>,
    by_source: BTreeMap<u32, BTreeSet<u16>>,
    bytes: usize,
}

struct Feed {
    end: Endpoint,
    now: Timestamp,
    reported: Reported,
}

impl Feed {
    fn new(format: FeedbackFormat) -> Self {
        Self { end: end(format), now: Timestamp::ZERO, reported: Reported::default() }
    }
    fn packet(&mut self, ssrc: u32, sequence: u16, number: u16) {
        let data = number.to_be_bytes();
        let element = Element::new(3, &data);
        let header = Header {
            payload_type: 96,
            sequence,
            timestamp: 90,
            ssrc,
            elements: element.as_slice(),
            ..Header::default()
        };
        let mut out = vec![];
        header.write_into(&mut out);
        out.extend([7; 100]);
        self.end.handle_datagram(self.now, &Datagram::new(&out, Ecn::NotEct));
        self.now += TimeDelta::from_millis(1);
        self.end.handle_timeout(self.now);
        while self.end.poll_transmit(self.now, &mut out).is_some() {
            self.reported.bytes += out.len();
            for packet in parse_compound(&out) {
                match packet.unwrap() {
                    Packet::Twcc(f) => {
                        let received = f.statuses().filter(|s| s.1.is_some()).map(|s| s.0);
                        self.reported.numbers.extend(received);
                    }
                    Packet::Ccfb(f) => {
                        for s in f.streams() {
                            let received = s.packets().filter(|p| p.1 != Metric::NotReceived).map(|p| p.0);
                            self.reported.by_source.entry(s.ssrc).or_default().extend(received);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Probes without a source, retransmissions and a layer whose sources are not known yet, and numbers that jump.
#[test]
fn transport_wide_feedback_reports_every_number() {
    for first in [0u16, 40_000, 65_000] {
        let mut feed = Feed::new(FeedbackFormat::TransportWide);
        let (mut media, mut other) = (100u16, 7u16);
        for n in 0..3_000u16 {
            let number = first.wrapping_add(n);
            if n < 5 || n % 10 == 3 {
                other += 1;
                feed.packet([0, 999, 0x8000_0000][usize::from(n % 3)], other, number);
            } else {
                // Its own numbers jump without an explanation.
                media = media.wrapping_add(if n % 500 == 0 { 20_000 } else { 1 });
                feed.packet(11, media, number);
            }
        }
        let missing: Vec<u16> =
            (0..2_900).map(|n| first.wrapping_add(n)).filter(|n| !feed.reported.numbers.contains(n)).collect();
        assert!(missing.is_empty(), "{first}: {missing:?}");
        assert!(feed.end.stats().counters().unknown_source > 250);
    }
}

#[test]
fn forged_numbers_hide_none_of_the_streams() {
    let mut feed = Feed::new(FeedbackFormat::TransportWide);
    let mut all = BTreeSet::new();
    for n in 0..5_000u16 {
        for k in 0..3 {
            feed.packet(1_000_000 + u32::from(n), 1, n.wrapping_mul(40_503).wrapping_add(k * 20_000));
        }
        feed.packet(11, n, 30_000 + n);
        all.insert(30_000 + n);
    }
    let missing: Vec<_> = all.iter().take(4_900).filter(|n| !feed.reported.numbers.contains(n)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Of 20,000 packets in 20 s.
    assert!(feed.reported.bytes < 400_000, "{}", feed.reported.bytes);
}

#[test]
fn rfc_8888_reports_each_source_from_its_first_packet_on() {
    let mut feed = Feed::new(FeedbackFormat::CongestionControl);
    for n in 0..3_000u16 {
        match n % 10 {
            3 => feed.packet(0, 500 + n / 10, 0),
            6 => feed.packet(999, 65_500u16.wrapping_add(n / 10), 0),
            _ => feed.packet(11, n, 0),
        }
    }
    let of = |ssrc: u32| &feed.reported.by_source[&ssrc];
    assert!((0..280).all(|n| of(0).contains(&(500 + n))));
    assert!((0..280).all(|n| of(999).contains(&65_500u16.wrapping_add(n))));
    // Ever new sources: the first eight, and those of the stream all the same.
    let mut feed = Feed::new(FeedbackFormat::CongestionControl);
    for n in 0..3_000u16 {
        feed.packet(11, n, 0);
        feed.packet(1_000 + u32::from(n), n, 0);
    }
    assert!((0..2_900).all(|n| feed.reported.by_source[&11].contains(&n)));
    // In each second of silence others take their places.
    assert!(feed.reported.by_source.len() <= 1 + 8 * 7, "{}", feed.reported.by_source.len());
}

/// So that a receiver that misses the first packets sees no wrap before it knows the source (RFC 3711, section 3.3.1).
#[test]
fn first_numbers_are_random_in_the_lower_half() {
    use crate::common::{Call, Fate, Link, Recorder};
    use weir_media::PerfectCodec;
    use weir_session::allocation::Demand;
    use weir_session::{OutgoingConfig, SendingPath};
    use weir_units::DataRate;
    let mut all = BTreeSet::new();
    for seed in 0..200 {
        let config = EndConfig { ssrc: 11, remote_ssrc: 22, seed, ..EndConfig::default() };
        let frames = PerfectCodec::frames(TimeDelta::from_millis(20), Timestamp::ZERO).into();
        let outgoing = OutgoingConfig::new(StreamIdentity::of(11), frames, Demand::default());
        let sending = SendingPath::new(Recorder::new(500).sender());
        let a = EndPlan::new(config).sends(outgoing).on(sending).make(Timestamp::ZERO).unwrap();
        let mut c =
            Call::new(a, end(FeedbackFormat::TransportWide), Link::new(DataRate::from_mbps(9), |_, _| Fate::Pass));
        c.run_until(Timestamp::from_millis(200));
        let (_, bytes, _) = c.sent[0].iter().find(|s| s.2.is_rtp()).unwrap();
        let first = u16::from_be_bytes([bytes[2], bytes[3]]);
        assert!(first < 1 << 15, "{first}");
        all.insert(first);
    }
    assert!(all.len() > 190);
}
