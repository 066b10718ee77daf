//! Repair by frames: what is sent besides a frame is decided when it has been sent whole, and when packets of it are sent again.
//!
//! The sender keeps its newest packets; a policy names sets of them, and random linear combinations of those sets are sent as repair packets
//! (RFC 8681, with a mask where a set has gaps: `docs/wire/rlc.md`, section 4.1). Receivers need to know no policy.
//!
//! A policy is a file here and a variant of [`FrameRepair`].

mod hairpin;
mod joint;
mod libwebrtc;
mod policy;
mod tambur;

pub use hairpin::Hairpin;
pub use tambur::Tambur;

use joint::JointPolicy;
use policy::{FramePolicy, Network, Order, SentFrame};
use std::collections::VecDeque;
use weir_cc::cue::PacketResult;
use weir_fec::{Coverage, Repair, SourceHistory, Symbol};
use weir_media::resilience::joint::Joint;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Packets kept, and their memory: as at the receiver ([`weir_fec::WindowLimits`]).
const KEPT: (usize, usize) = (1_024, 2 << 20);
/// Most frames remembered, some seconds of video.
const FRAMES: usize = 256;
/// Weight of earlier frames in the share of repair packets: a mean over about four frames.
const KEPT_OF_SHARE: f64 = 0.75;
/// Most orders that wait.
const ORDERS: usize = 256;

/// A policy of repair by frames, with its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameRepair {
    /// Repair packets for each transmission of a frame's packets, by the rounds left.
    Hairpin(Hairpin),
    /// A streaming code over frames.
    Tambur(Tambur),
    /// Requests, a code over frames and copies of what is sent again, by a plan that has the playout too.
    Joint(Joint),
    /// As many for groups of frames as libwebrtc sends beside requests.
    Libwebrtc,
}

impl FrameRepair {
    fn policy(self) -> Box<dyn FramePolicy> {
        match self {
            Self::Hairpin(config) => Box::new(config.policy()),
            Self::Tambur(config) => Box::new(config.policy()),
            Self::Joint(bounds) => Box::new(JointPolicy::new(bounds)),
            Self::Libwebrtc => Box::<libwebrtc::LibwebrtcPolicy>::default(),
        }
    }
}

/// A media packet as it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramePacket {
    pub now: Timestamp,
    pub sequence: u64,
    pub captured: Timestamp,
    pub rtp_timestamp: u32,
    /// Whether it ends its frame.
    pub marker: bool,
}

/// Makes the repair packets of a stream by frames.
#[derive(Debug)]
pub(crate) struct ByFrames {
    policy: Box<dyn FramePolicy>,
    history: SourceHistory,
    /// Whole ones, the newest last; a frame of more packets than a repair packet covers is several.
    frames: VecDeque<SentFrame>,
    /// The frame being sent, and its RTP timestamp.
    open: Option<(u32, SentFrame)>,
    network: Network,
    orders: VecDeque<Order>,
    /// Repair packets and packets of the last frames, the newest with the greatest weight.
    recent: (f64, f64),
}

impl ByFrames {
    pub(crate) fn new(choice: FrameRepair) -> Self {
        Self {
            policy: choice.policy(),
            history: SourceHistory::new(KEPT.0, KEPT.1),
            frames: VecDeque::new(),
            open: None,
            network: Network::default(),
            orders: VecDeque::new(),
            recent: (0.0, 0.0),
        }
    }

    /// A packet of media is sent.
    pub(crate) fn on_packet(&mut self, p: FramePacket, symbol: Symbol<'_>) {
        self.history.push(p.sequence, symbol);
        self.network.on_sent(1, p.now);
        if self.open.as_ref().is_some_and(|(timestamp, _)| *timestamp != p.rtp_timestamp) {
            self.close(p.now);
        }
        let is_added = self.open.as_mut().is_some_and(|(_, frame)| frame.packets.insert(p.sequence));
        if !is_added {
            self.close(p.now);
            let mut packets = Coverage::new(p.sequence);
            packets.insert(p.sequence);
            self.open = Some((p.rtp_timestamp, SentFrame { captured: p.captured, begun: p.now, packets }));
        }
        if p.marker {
            self.close(p.now);
        }
    }

    fn close(&mut self, now: Timestamp) {
        let Some((_, frame)) = self.open.take() else { return };
        if self.frames.len() >= FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back(frame);
        let Self { policy, frames, network, orders, .. } = self;
        let mut ordered = 0.0;
        policy.on_frame(frames, network, now, &mut |order| {
            ordered += f64::from(order.count);
            add(orders, order);
        });
        let (repairs, packets) = self.recent;
        self.recent = (repairs * KEPT_OF_SHARE + ordered, packets * KEPT_OF_SHARE + frame.packets.len() as f64);
    }

    /// Share of the packets sent with the last frames that were repair packets, if it is to be counted before they are sent.
    pub(crate) fn share(&self) -> f64 {
        let (repairs, packets) = self.recent;
        if packets > 0.0 && !self.policy.is_measured() { repairs / (repairs + packets) } else { 0.0 }
    }

    /// These packets, in any order, are going to be sent again.
    pub(crate) fn on_resent(&mut self, sequences: &[u64], now: Timestamp) {
        if sequences.is_empty() {
            return;
        }
        self.network.on_resent(sequences.len() as u32, now);
        let Self { policy, frames, open, network, orders, .. } = self;
        for frame in frames.iter().chain(open.iter().map(|(_, frame)| frame)) {
            let mut again = Coverage::new(frame.packets.base());
            for sequence in sequences.iter().filter(|s| frame.packets.contains(**s)) {
                again.insert(*sequence);
            }
            if !again.is_empty() {
                policy.on_resent(frame, &again, network, now, &mut |order| add(orders, order));
            }
        }
    }

    /// A report of this fraction lost was received.
    pub(crate) fn on_report(&mut self, lost: f64, rtt: Option<TimeDelta>, now: Timestamp) {
        self.network.on_report(lost, rtt, now);
        self.policy.on_report(lost, now);
    }

    /// Feedback of any stream's packets, in the order in which they were sent.
    pub(crate) fn on_results(&mut self, results: &[PacketResult]) {
        self.policy.on_results(results);
    }

    /// The policy's internal values, by name.
    pub(crate) fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.policy.metrics(out);
    }

    /// The rate that media and repair packets share.
    pub(crate) fn set_pixels(&mut self, pixels: u32) {
        self.network.set_pixels(pixels);
    }
    pub(crate) fn set_rate(&mut self, rate: DataRate) {
        self.network.set_rate(rate);
    }

    /// The next repair packet.
    pub(crate) fn poll(&mut self, now: Timestamp) -> Option<Repair<'_>> {
        let order = loop {
            let order = self.orders.front_mut()?;
            if order.count > 0 && self.history.has_any(&order.packets) {
                order.count -= 1;
                break *order;
            }
            self.orders.pop_front();
        };
        self.network.on_sent(1, now);
        self.history.combine(&order.packets)
    }

    /// Forgets the packets sent so far: they are of another source, or need no protection any more.
    pub(crate) fn clear(&mut self) {
        self.history.clear();
        self.frames.clear();
        self.orders.clear();
        self.open = None;
    }
}

fn add(orders: &mut VecDeque<Order>, order: Order) {
    if order.count > 0 && orders.len() < ORDERS {
        orders.push_back(order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of `sizes` packets, 33 ms apart; `report` is called before each.
    fn sent(
        choice: FrameRepair,
        sizes: &[u64],
        mut before: impl FnMut(&mut ByFrames, usize, Timestamp),
    ) -> Vec<Vec<u64>> {
        let mut by_frames = ByFrames::new(choice);
        let (mut sequence, mut repairs) = (100, vec![]);
        for (i, size) in sizes.iter().enumerate() {
            let now = Timestamp::from_millis(33 * i as i64);
            before(&mut by_frames, i, now);
            for k in 1..=*size {
                let p = FramePacket { now, sequence, captured: now, rtp_timestamp: i as u32, marker: k == *size };
                by_frames.on_packet(p, Symbol::new(&[sequence as u8; 20]));
                sequence += 1;
            }
            while let Some(repair) = by_frames.poll(now) {
                repairs.push(repair.coverage.iter().collect());
            }
        }
        repairs
    }

    #[test]
    fn tambur_sends_half_of_the_frame_that_is_a_delay_back_over_its_window() {
        let choice = FrameRepair::Tambur(Tambur::default());
        // Without losses nothing is sent.
        assert!(sent(choice, &[4; 40], |_, _, _| ()).is_empty());
        let repairs = sent(choice, &[4, 6, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1], |b, i, now| {
            if i == 0 {
                b.on_report(0.01, None, now);
            }
        });
        // Frame 3 has half of frame 0: its own packets 112 and 113, all of 100 to 103, and the first kind of those between.
        let third = vec![100, 101, 102, 103, 104, 106, 108, 110, 112, 113];
        assert_eq!(repairs[..2], [third.clone(), third]);
        let fourth = vec![104, 105, 106, 107, 108, 109, 110, 112, 114, 115];
        assert_eq!(repairs[2..5], [fourth.clone(), fourth.clone(), fourth]);
        // Odd halves add up: 2, 2, 2 and 1 packets make one, one, one, and a half; then one for each two frames.
        assert_eq!(repairs.len(), 2 + 3 + 3 + 2, "{repairs:?}");
    }

    #[test]
    fn tambur_stops_two_seconds_after_the_last_report_of_a_loss() {
        let repairs = sent(FrameRepair::Tambur(Tambur::default()), &[2; 200], |b, i, now| {
            b.on_report(if i < 30 { 0.1 } else { 0.0 }, None, now);
        });
        // From 3 to 29, and 2 s more.
        assert!((85..=90).contains(&repairs.len()), "{}", repairs.len());
    }

    #[test]
    fn hairpin_adds_to_what_is_sent_again_by_the_rounds_left() {
        let choice = FrameRepair::Hairpin(Hairpin::default());
        let of = |rtt: i64, late: i64| {
            let mut b = ByFrames::new(choice);
            let at = Timestamp::from_millis;
            b.on_report(0.0, Some(TimeDelta::from_millis(rtt)), at(0));
            for sequence in 0..1_000_u64 {
                let now = at(sequence as i64);
                let p = FramePacket {
                    now,
                    sequence,
                    captured: now,
                    rtp_timestamp: sequence as u32 / 10,
                    marker: sequence % 10 == 9,
                };
                let p = FramePacket { captured: at((sequence / 10 * 10) as i64), ..p };
                b.on_packet(p, Symbol::new(&[1; 20]));
                if sequence % 100 == 3 {
                    b.on_resent(&[sequence], now);
                }
                while b.poll(now).is_some() {}
            }
            // A frame of ten captured at 990 ms.
            let now = at(990 + late);
            b.on_resent(&[991, 993, 5], now);
            let mut all = vec![];
            while let Some(repair) = b.poll(now) {
                all.push(repair.coverage.iter().collect::<Vec<_>>());
            }
            all
        };
        // Of 100 ms, three rounds of 20 ms are left, then two, then the last; 5 is of a frame that is late.
        let [early, later, last] = [10, 40, 80].map(|late| of(20, late).len());
        assert_eq!((early, later), (0, 0));
        assert!((3..=8).contains(&last), "{last}");
        assert!(of(20, 80).iter().all(|packets| packets == &[991, 993]));
        // A packet that cannot arrive in time has none.
        assert_eq!(of(20, 95).len(), 0);
    }

    /// Feedback of `count` packets from `first`, of which those with `is_lost` are lost.
    fn fates(first: u64, count: u64, is_lost: impl Fn(u64) -> bool) -> Vec<PacketResult> {
        let fate = |sequence| PacketResult {
            sequence,
            departure: Timestamp::ZERO,
            arrival: (!is_lost(sequence)).then(|| weir_units::RemoteTimestamp::from_millis(1)),
            size: weir_units::DataSize::from_bytes(1_000),
            ecn: weir_units::Ecn::NotEct,
            probe: 0,
            was_lost: false,
        };
        (first..first + count).map(fate).collect()
    }

    #[test]
    fn a_joint_plan_has_repair_only_where_requests_are_too_late() {
        let joint = Joint { latest: TimeDelta::from_millis(200), ..Joint::default() };
        let of = |rtt: i64, lossy: bool| {
            let rtt = TimeDelta::from_millis(rtt);
            sent(FrameRepair::Joint(joint), &[5; 300], |b, i, now| {
                b.on_report(0.0, Some(rtt), now);
                b.on_results(&fates(5 * i as u64, 5, |s| lossy && s % 20 == 7));
            })
        };
        assert!(of(40, true).is_empty() && of(200, false).is_empty());
        let repairs = of(200, true);
        // One for three to one for two of 1,500 packets, over two frames or more.
        assert!((300..=800).contains(&repairs.len()), "{}", repairs.len());
        assert!(repairs.iter().skip(50).all(|w| w.len() >= 10 && w.len() % 5 == 0), "{:?}", repairs.last());
    }

    #[test]
    fn a_joint_plan_stays_by_the_reports_of_receivers_without_feedback_for_each_packet() {
        let joint = Joint { latest: TimeDelta::from_millis(200), ..Joint::default() };
        let repairs = sent(FrameRepair::Joint(joint), &[5; 300], |b, i, now| {
            if i % 30 == 0 {
                b.on_report(0.05, Some(TimeDelta::from_millis(200)), now);
            }
        });
        assert!(repairs.len() > 200, "{}", repairs.len());
    }

    #[test]
    fn memory_is_bounded_without_ends_of_frames_and_under_a_storm_of_requests() {
        for choice in [
            FrameRepair::Hairpin(Hairpin::default()),
            FrameRepair::Tambur(Tambur::default()),
            FrameRepair::Joint(Joint::default()),
            FrameRepair::Libwebrtc,
        ] {
            let mut b = ByFrames::new(choice);
            let now = Timestamp::from_millis(5);
            let all: Vec<u64> = (0..20_000).collect();
            for sequence in 0..20_000 {
                let p = FramePacket { now, sequence, captured: now, rtp_timestamp: 0, marker: false };
                b.on_packet(p, Symbol::new(&[1; 1_200]));
                if sequence % 500 == 0 {
                    b.on_resent(&all, now);
                }
            }
            assert!(b.frames.len() <= FRAMES && b.orders.len() <= ORDERS && b.history.held_bytes() <= KEPT.1 + 1_280);
            b.clear();
            assert!(b.poll(now).is_none());
        }
    }
}
