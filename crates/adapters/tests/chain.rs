//! Controllers in two chains of `rtc-interceptor`, through a drop-tail link in virtual time: media and feedback are RTP and RTCP
//! as its own interceptors make them.

use rtc_interceptor::{
    CongestionControlBuilder, Interceptor, PacerBuilder, Packet, RTPHeaderExtension, Registry, Rfc8888Builder, Slot,
    StreamInfo, TaggedPacket, TwccReceiverBuilder, TwccSenderBuilder,
};
use rtc_shared::TransportContext;
use rtc_shared::marshal::MarshalSize;
use sansio::Protocol;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weir_adapters::{CongestionControl, Estimator, Rates, Refused, Settings};

const TRANSPORT_CC: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
const DELAY: Duration = Duration::from_millis(25);
/// Longest wait in the link's queue.
const QUEUE: Duration = Duration::from_millis(300);
const PAYLOAD: usize = 1_100;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Feedback {
    TransportWide,
    Rfc8888,
}

/// Results of one phase of a call.
#[derive(Debug, Default, Clone, Copy)]
struct Phase {
    /// Received over capacity.
    used: f64,
    /// Greatest wait in the link's queue.
    longest: Duration,
    lost: u32,
}

fn stream(feedback: Feedback) -> StreamInfo {
    let extension = RTPHeaderExtension { uri: TRANSPORT_CC.into(), id: 5 };
    let rtp_header_extensions = if feedback == Feedback::TransportWide { vec![extension] } else { vec![] };
    let mut info =
        StreamInfo { ssrc: 7, payload_type: 96, clock_rate: 90_000, rtp_header_extensions, ..StreamInfo::default() };
    if feedback == Feedback::Rfc8888 {
        info.rtcp_feedback = vec![rtc_interceptor::RTCPFeedback { typ: "ack".into(), parameter: "ccfb".into() }];
    }
    info
}

fn receiver(feedback: Feedback) -> impl Interceptor {
    match feedback {
        Feedback::TransportWide => Registry::new().with(Slot::TwccReceiver, TwccReceiverBuilder::new().build()),
        Feedback::Rfc8888 => Registry::new().with(Slot::Rfc8888, Rfc8888Builder::new().build()),
    }
    .build()
}

/// A call of 30 frames a second; each phase has a length in s and a capacity in bit/s. The last second of those given as
/// warm-up is left out of each phase's numbers.
#[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
fn call(registry: Registry, rates: &Rates, feedback: Feedback, phases: &[(u64, f64)]) -> Vec<Phase> {
    let mut sender = registry.with(Slot::TwccSender, TwccSenderBuilder::new().build()).build();
    let mut receiver = receiver(feedback);
    sender.bind_local_stream(&stream(feedback));
    receiver.bind_remote_stream(&stream(feedback));
    let begin = Instant::now();
    let tagged =
        |now, packet: Packet| TaggedPacket { now, transport: TransportContext::default(), message: packet.into() };
    let (mut forward, mut back) = (VecDeque::new(), VecDeque::new());
    let (mut sequence, mut link_free, mut at) = (0u16, begin, begin);
    let mut out = Vec::new();
    for &(seconds, capacity) in phases {
        let mut phase = Phase::default();
        let mut bytes = 0;
        let settled = at + Duration::from_secs(seconds / 2);
        let end = at + Duration::from_secs(seconds);
        while at < end {
            at += Duration::from_millis(1);
            if (at - begin).as_millis().is_multiple_of(33) {
                let frame = rates.media_rate().as_bps_f64() * 0.033 / 8.0;
                let packets = (frame / PAYLOAD as f64).ceil().max(1.0);
                for _ in 0..packets as u32 {
                    let header = rtc_rtp::Header {
                        version: 2,
                        ssrc: 7,
                        payload_type: 96,
                        sequence_number: sequence,
                        ..Default::default()
                    };
                    sequence = sequence.wrapping_add(1);
                    let rtp = rtc_rtp::Packet { header, payload: vec![0; (frame / packets) as usize].into() };
                    sender.handle_write(tagged(at, Packet::Rtp(rtp))).expect("queued");
                }
            }
            sender.handle_timeout(at).expect("works");
            while let Some(sent) = sender.poll_write() {
                let Packet::Rtp(rtp) = sent.message.packet else { continue };
                link_free = link_free.max(at);
                if link_free - at > QUEUE {
                    phase.lost += 1;
                    continue;
                }
                phase.longest = phase.longest.max(if at > settled { link_free - at } else { Duration::ZERO });
                link_free += Duration::from_secs_f64(rtp.marshal_size() as f64 * 8.0 / capacity);
                forward.push_back((link_free + DELAY, rtp));
            }
            while forward.front().is_some_and(|(due, _)| *due <= at) {
                let Some((_, rtp)) = forward.pop_front() else { break };
                bytes += if at > settled { rtp.marshal_size() } else { 0 };
                receiver.handle_read(tagged(at, Packet::Rtp(rtp))).expect("read");
                while receiver.poll_read().is_some() {}
            }
            receiver.handle_timeout(at).expect("works");
            while let Some(sent) = receiver.poll_write() {
                back.push_back((at + DELAY, sent.message.packet));
            }
            while back.front().is_some_and(|(due, _)| *due <= at) {
                let Some((_, packet)) = back.pop_front() else { break };
                sender.handle_read(tagged(at, packet)).expect("read");
                while sender.poll_read().is_some() {}
            }
        }
        phase.used = bytes as f64 * 8.0 / (seconds - seconds / 2) as f64 / capacity;
        out.push(phase);
    }
    out
}

fn in_chain(name: &str) -> (Registry, Rates) {
    let weir = CongestionControl::new(name, &Settings::default()).expect("per-packet feedback alone");
    let rates = weir.rates();
    let pacer = PacerBuilder::new().with_target_bitrate(rates.pacing_rate().as_bps_f64()).build();
    (Registry::new().with(Slot::CongestionControl, weir).with(Slot::Pacer, pacer), rates)
}

#[test]
fn controllers_use_the_link_and_follow_its_fall() {
    for name in ["gcc", "nada", "scream", "scream2", "sluice"] {
        for feedback in [Feedback::TransportWide, Feedback::Rfc8888] {
            let (registry, rates) = in_chain(name);
            let format = if feedback == Feedback::Rfc8888 { "RFC 8888" } else { "transport-wide" };
            let [before, fallen] = call(registry, &rates, feedback, &[(40, 2e6), (20, 5e5)])[..] else {
                panic!("two phases")
            };
            assert!(before.used > 0.75, "{name}, {format}: {before:?}");
            assert!((0.6..1.01).contains(&fallen.used), "{name}, {format}: {fallen:?}");
            assert!(rates.rtt().is_some());
        }
    }
}

#[test]
fn an_estimator_fits_where_theirs_does() {
    for name in ["gcc", "nada"] {
        let estimator = Estimator::new(name, &Settings::default()).expect("per-packet feedback alone");
        let rates = estimator.rates();
        let registry = Registry::new()
            .with(Slot::CongestionControl, CongestionControlBuilder::new(estimator).build())
            .with(Slot::Pacer, PacerBuilder::new().with_target_bitrate(300e3).build());
        let phases = call(registry, &rates, Feedback::TransportWide, &[(40, 1e6)]);
        assert!(phases[0].used > 0.75, "{name}: {phases:?}");
    }
}

#[test]
fn controllers_that_need_more_are_refused_by_name() {
    let refused = |name: &str| CongestionControl::new(name, &Settings::default()).err().map(|e| e.to_string());
    for name in ["nada-receiver", "ccid2", "gcc-remb"] {
        let text = refused(name).unwrap_or_else(|| panic!("{name} needs more"));
        assert!(text.contains(name) && text.contains("gcc, "), "{text}");
    }
    assert!(matches!(CongestionControl::new("gc", &Settings::default()), Err(Refused::Unknown { .. })));
    let settings = Settings { params: vec![("no_such".into(), 1.0)], ..Settings::default() };
    assert!(Estimator::new("gcc", &settings).is_err());
}

#[test]
fn bounds_hold_at_once_and_silence_lowers_the_rate() {
    let (registry, rates) = in_chain("gcc");
    call(registry, &rates, Feedback::TransportWide, &[(20, 2e6)]);
    let kbps = weir_units::DataRate::from_kbps;
    rates.set_limits(weir_cc::Limits { floor: kbps(50), ceiling: kbps(400) });
    assert!(rates.media_rate() <= kbps(400));
    let mut names = Vec::new();
    rates.metrics(&mut |name, _| names.push(name));
    assert!(!names.is_empty());
}
