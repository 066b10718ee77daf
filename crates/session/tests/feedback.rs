//! Per-packet feedback with more packets in an interval than a datagram holds.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::{Call, Fate, Link, Recorded, Recorder};
use weir_cc::{FeedbackFormat, FeedbackPlan};
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    EndConfig, EndPlan, IncomingConfig, OutgoingConfig, ReceiverModel, ReceivingPath, SendingPath, SessionParams,
    StreamIdentity,
};
use weir_units::{DataRate, TimeDelta, Timestamp};

const INTERVAL: TimeDelta = TimeDelta::from_millis(100);

fn call(recorder: &Recorder, plan: FeedbackPlan) -> Call {
    call_with(recorder, plan, ReceiverModel::Weir)
}

fn call_with(recorder: &Recorder, plan: FeedbackPlan, receiver: ReceiverModel) -> Call {
    let config = EndConfig { ssrc: 11, remote_ssrc: 22, ..EndConfig::default() };
    let frames = PerfectCodec::frames(TimeDelta::from_millis(10), Timestamp::ZERO).into();
    let outgoing = OutgoingConfig::new(StreamIdentity::of(11), frames, Demand::default());
    let sending = SendingPath { per_packet_feedback: true, ..SendingPath::new(recorder.sender()) };
    let incoming = IncomingConfig::new(StreamIdentity::of(11), MediaKind::default());
    let receiving = ReceivingPath { feedback: Some(plan), ..ReceivingPath::default() };
    let params = SessionParams { receiver, ..config.params };
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: 2, params, ..config.clone() };
    let (a, b) = (
        EndPlan::new(config).sends(outgoing).on(sending).make(Timestamp::ZERO).unwrap(),
        EndPlan::new(other).receives(incoming).on(receiving).make(Timestamp::ZERO).unwrap(),
    );
    Call::new(a, b, Link::new(DataRate::from_mbps(400), |_, _| Fate::Pass))
}

#[test]
fn what_does_not_fit_into_a_datagram_follows_at_once() {
    for format in [FeedbackFormat::CongestionControl, FeedbackFormat::TransportWide] {
        // A second at 100 Mbit/s: some 900 packets of media in each interval of 100 ms.
        let recorder = Recorder::new(100_000);
        let plan = FeedbackPlan { format, min_interval: INTERVAL, max_interval: INTERVAL, bandwidth_share: 0.05 };
        let mut c = call(&recorder, plan);
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

#[test]
fn after_a_mute_feedback_comes_as_often_as_before_it() {
    let format = FeedbackFormat::CongestionControl;
    let (min_interval, max_interval) = (TimeDelta::from_millis(20), TimeDelta::from_millis(400));
    let plan = FeedbackPlan { format, min_interval, max_interval, bandwidth_share: 0.05 };
    let mut c = call(&Recorder::new(1_000), plan);
    for (until_s, is_paused) in [(5, true), (25, false), (30, true)] {
        c.run_until(Timestamp::from_secs(until_s));
        c.a.set_paused(is_paused);
    }
    let messages: Vec<_> = c.sent[1].iter().filter(|s| !s.2.is_rtp()).map(|s| s.0).collect();
    let within = |from_ms, to_ms| {
        let span = Timestamp::from_millis(from_ms)..Timestamp::from_millis(to_ms);
        messages.iter().filter(|at| span.contains(at)).count()
    };
    let (before, after) = (within(4_000, 5_000), within(25_000, 26_000));
    assert!((20..=50).contains(&before) && after * 10 >= before * 8, "{before} messages a second, {after} after it");
}

#[test]
fn chromium_reports_each_62_5_ms_whatever_the_rate_and_through_silence() {
    let plan = ReceiverModel::Chromium.feedback(FeedbackPlan {
        format: FeedbackFormat::CongestionControl,
        min_interval: TimeDelta::from_millis(20),
        max_interval: TimeDelta::from_millis(400),
        bandwidth_share: 0.05,
    });
    for kbps in [60, 1_000, 20_000] {
        let recorder = Recorder::new(kbps);
        let mut c = call_with(&recorder, plan, ReceiverModel::Chromium);
        for (until_ms, is_paused) in [(3_000, true), (4_111, false), (6_000, true)] {
            c.run_until(Timestamp::from_millis(until_ms));
            c.a.set_paused(is_paused);
        }
        let reports = recorder.recorded().iter().filter(|r| matches!(r, Recorded::Feedback(_))).count();
        // Frames come each 10 ms, so that a report is due at each of the timer's turns but those of the pause.
        let turns = (3_000.0_f64 + 6_000.0 - 4_111.0) / 62.5;
        assert!((turns - 4.0..=turns + 2.0).contains(&(reports as f64)), "{kbps} kbit/s: {reports} of {turns:.0}");
        let period = TimeDelta::from_micros(62_500).as_nanos();
        let feedback = c.sent[1].iter().filter(|s| !s.2.is_rtp()).map(|s| (s.0 - Timestamp::ZERO).as_nanos());
        let on_time = feedback.filter(|at| at % period == 0).count();
        assert!(on_time == reports, "{kbps} kbit/s: {on_time} of {reports} reports at the timer's turns");
    }
}
