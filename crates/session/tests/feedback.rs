//! Per-packet feedback with more packets in an interval than a datagram holds.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::{Call, Fate, Link, Recorded, Recorder};
use weir_cc::{FeedbackFormat, FeedbackPlan};
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{EndConfig, EndPlan, IncomingConfig, OutgoingConfig, ReceivingPath, SendingPath, StreamIdentity};
use weir_units::{DataRate, TimeDelta, Timestamp};

const INTERVAL: TimeDelta = TimeDelta::from_millis(100);

/// A second at 100 Mbit/s: some 900 packets of media in each interval of 100 ms.
fn call(recorder: &Recorder, format: FeedbackFormat) -> Call {
    let plan = FeedbackPlan { format, min_interval: INTERVAL, max_interval: INTERVAL, bandwidth_share: 0.05 };
    let config = EndConfig { ssrc: 11, remote_ssrc: 22, ..EndConfig::default() };
    let frames = PerfectCodec::frames(TimeDelta::from_millis(10), Timestamp::ZERO).into();
    let outgoing = OutgoingConfig::new(StreamIdentity::of(11), frames, Demand::default());
    let sending = SendingPath { per_packet_feedback: true, ..SendingPath::new(recorder.sender()) };
    let incoming = IncomingConfig::new(StreamIdentity::of(11), MediaKind::default());
    let receiving = ReceivingPath { feedback: Some(plan), ..ReceivingPath::default() };
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, ..config.clone() };
    let (a, b) = (
        EndPlan::new(config).sends(outgoing).on(sending).make(Timestamp::ZERO).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(Timestamp::ZERO).unwrap(),
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
