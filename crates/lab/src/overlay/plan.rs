//! Parameters of an overlay's run, and their ranges.

use crate::plan::PlanError;
use serde::Serialize;
use weir_session::overlay::MAX_TREES;
use weir_units::{DataRate, TimeDelta};

/// Most nodes of a run.
pub(super) const MAX_NODES: u32 = 20_000;
/// Most packets times nodes of a run, each of which takes two bytes.
const MAX_ARRIVALS: f64 = 5e8;

/// How packets are divided among trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schemars(rename = "OverlayDivision"))]
pub enum Division {
    /// Packet by packet.
    Packets,
    /// Frame by frame.
    Frames,
}

/// An overlay to be run.
#[derive(Clone, PartialEq, Debug)]
pub struct OverlayPlan {
    /// Nodes beside the root.
    pub nodes: u32,
    /// Trees.
    pub trees: u8,
    /// Rate of the stream, RTP headers included.
    pub rate: DataRate,
    /// Copies of the stream that the root can send: its children in each tree.
    pub root_copies: u16,
    /// Nodes join at random times within this span from the start on; at once if it is zero.
    pub arrivals: TimeDelta,
    /// Share of the nodes that leave, 0 to 1.
    pub leave: f64,
    /// When they leave: all at once, or from then on.
    pub leave_at: TimeDelta,
    /// They leave at random times within this span; at once if it is zero.
    pub leave_within: TimeDelta,
    /// Whether a focus places nodes; otherwise their neighbours do.
    pub focus: bool,
    /// Whether they say so, and forward until others have replaced them; otherwise they vanish.
    pub graceful: bool,
    /// Share of packets lost at random on each access link, in each direction, 0 to 1.
    pub loss: f64,
    /// How packets are divided among trees.
    pub division: Division,
    /// The controller of each hop.
    pub controller: String,
    /// Delay from sending to playout, after which a packet is of no use.
    pub playout: TimeDelta,
    /// Duration of the run.
    pub duration: TimeDelta,
    /// Seed of links, arrivals and of who leaves.
    pub seed: u64,
}

impl Default for OverlayPlan {
    /// 1,000 nodes that join at once, and 5 trees of a stream of 1 Mbit/s; a fifth of the nodes vanishes after 10 of 20 s.
    fn default() -> Self {
        Self {
            nodes: 1_000,
            trees: 5,
            rate: DataRate::from_mbps(1),
            root_copies: 5,
            arrivals: TimeDelta::ZERO,
            leave: 0.2,
            leave_at: TimeDelta::from_secs(10),
            leave_within: TimeDelta::ZERO,
            focus: true,
            graceful: false,
            loss: 0.0,
            division: Division::Packets,
            controller: "gcc".into(),
            playout: TimeDelta::from_secs(1),
            duration: TimeDelta::from_secs(20),
            seed: 1,
        }
    }
}

impl OverlayPlan {
    /// Packets of the stream a frame, at 30 frames a second, of at most 1,200 bytes of payload.
    pub(super) fn packets_a_frame(&self) -> u32 {
        let bytes = self.rate.as_bps_f64() / 8.0 / 30.0;
        ((bytes / 1_200.0).ceil() as u32).max(1)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first that is out of its range.
    pub fn check(&self) -> Result<(), PlanError> {
        let wrong = |what, value: String, expected: String| Err(PlanError::value(what, value, expected));
        if self.nodes == 0 || self.nodes > MAX_NODES {
            return wrong("the number of nodes", self.nodes.to_string(), format!("1 to {MAX_NODES}"));
        }
        if self.trees == 0 || self.trees > MAX_TREES {
            return wrong("the number of trees", self.trees.to_string(), format!("1 to {MAX_TREES}"));
        }
        let (low, high) = (DataRate::from_kbps(50), DataRate::from_mbps(50));
        if self.rate < low || self.rate > high {
            return wrong("the rate", self.rate.to_string(), format!("{low} to {high}"));
        }
        if self.root_copies == 0 || self.root_copies > 1_000 {
            return wrong("the root's number of copies", self.root_copies.to_string(), "1 to 1000".into());
        }
        for (what, share) in [("the share that leaves", self.leave), ("the share that is lost", self.loss)] {
            if !(0.0..=0.9).contains(&share) {
                return wrong(what, share.to_string(), "0 to 0.9".into());
            }
        }
        let longest = TimeDelta::from_secs(3_600);
        if self.duration <= TimeDelta::ZERO || self.duration > longest {
            return wrong("the duration", self.duration.to_string(), format!("up to {longest}"));
        }
        if self.playout <= TimeDelta::ZERO || self.playout > TimeDelta::from_secs(60) {
            return wrong("the playout delay", self.playout.to_string(), "up to 60 s".into());
        }
        let last = self.leave_at + self.leave_within.max(TimeDelta::ZERO);
        let times = [
            ("the time of leaving", self.leave_at),
            ("the span of leaving", self.leave_within),
            ("the time of the last leave", last),
            ("the span of arrivals", self.arrivals),
        ];
        for (what, at) in times {
            if at.is_negative() || at > self.duration {
                return wrong(what, at.to_string(), format!("up to {}, the duration", self.duration));
            }
        }
        let packets = f64::from(self.packets_a_frame()) * 30.0 * self.duration.as_secs_f64();
        if packets * f64::from(self.nodes) > MAX_ARRIVALS {
            let value = format!("{:.0}", packets * f64::from(self.nodes));
            return wrong("the number of nodes times packets", value, format!("at most {MAX_ARRIVALS}"));
        }
        Ok(())
    }
}
