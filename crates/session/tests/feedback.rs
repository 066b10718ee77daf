//! Per-packet feedback with more packets in an interval than a datagram holds.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Call, Fate, Link, Recorded, Recorder};
use weir_cc::{FeedbackFormat, FeedbackPlan, Limits};
use weir_media::PerfectCodec;
use weir_session::{Endpoint, EndpointConfig, ReceiveConfig, SendConfig};
use weir_units::{DataRate, TimeDelta, Timestamp};

const INTERVAL: TimeDelta = TimeDelta::from_millis(100);

/// A second at 100 Mbit/s: some 900 packets of media in each interval of 100 ms.
fn call(recorder: &Recorder, format: FeedbackFormat) -> Call {
    let plan = FeedbackPlan { format, min_interval: INTERVAL, max_interval: INTERVAL, bandwidth_share: 0.05 };
    let rate = DataRate::from_mbps(100);
    let config = EndpointConfig { ssrc: 11, remote_ssrc: 22, ..EndpointConfig::default() };
    let frames = PerfectCodec::frames(TimeDelta::from_millis(10), Timestamp::ZERO).into();
    let limits = Limits { floor: DataRate::ZERO, ceiling: rate };
    let send = SendConfig { per_packet_feedback: true, ..SendConfig::new(frames, recorder.sender(), limits) };
    let receive = ReceiveConfig { feedback: Some(plan), ..ReceiveConfig::default() };
    let other = EndpointConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..config.clone() };
    let (a, b) = (
        Endpoint::new(config, Some(send), None, Timestamp::ZERO),
        Endpoint::new(other, None, Some(receive), Timestamp::ZERO),
    );
    Call::new(a, b, Link::new(DataRate::from_mbps(400), |_, _| Fate::Pass))
}

#[test]
fn what_does_not_fit_into_a_datagram_follows_at_once() {
    for format in [FeedbackFormat::CongestionControl, FeedbackFormat::TransportWide] {
        let recorder = Recorder::new(100_000);
        let mut c = call(&recorder, format);
        c.run_until(Timestamp::from_secs(1));
        let sent = recorder.sent().len();
        let mut reported = 0;
        for r in recorder.recorded() {
            if let Recorded::Feedback(packets) = r {
                reported += packets.iter().filter(|p| p.arrival.is_some()).count();
            }
        }
        // All but those in flight and of the last interval.
        assert!(sent > 5_000 && reported * 100 >= sent * 75, "{format:?}: {reported} of {sent}");
        let rtcp = c.sent[1].iter().filter(|s| !s.2.is_rtp()).map(|s| (s.0, s.1.len()));
        let feedback: Vec<_> = rtcp.filter(|s| s.1 > 200).collect();
        assert!(feedback.iter().all(|s| s.1 <= 1_400), "{format:?}: a datagram is too long");
        let at_once = feedback.windows(2).filter(|w| w[0].0 == w[1].0).count();
        let others = feedback.windows(2).filter(|w| w[1].0 - w[0].0 >= INTERVAL).count();
        assert!(at_once >= 5 && others >= 5, "{format:?}: {at_once} at once, {others} later");
    }
}
