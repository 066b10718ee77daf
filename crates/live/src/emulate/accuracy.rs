//! Accuracy of an emulated run.

use super::exit::Saturated;
use serde::Serialize;
use std::fmt;
use weir_path::LinkStats;
use weir_sim::LogHistogram;
use weir_units::TimeDelta;

/// How much later than planned packets were sent, in ms. None is early.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayError {
    /// Mean.
    pub mean_ms: f64,
    /// Median, within 0.8 %.
    pub p50_ms: f64,
    /// 99th percentile, within 0.8 %.
    pub p99_ms: f64,
    /// Largest.
    pub max_ms: f64,
    /// Packets that were more than 1 ms late.
    pub late: u64,
}

impl DelayError {
    pub(super) fn of(errors: &LogHistogram, late: u64) -> Option<Self> {
        let ms = TimeDelta::as_millis_f64;
        Some(Self {
            mean_ms: ms(errors.mean()?),
            p50_ms: ms(errors.quantile(0.5)?),
            p99_ms: ms(errors.quantile(0.99)?),
            max_ms: ms(errors.range()?.1),
            late,
        })
    }
}

/// One link over a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkAccuracy {
    /// Its name.
    pub name: String,
    /// Packets that it was given.
    pub offered: u64,
    /// Packets delivered, including copies.
    pub delivered: u64,
    /// Dropped by the full queue.
    pub dropped_queue: u64,
    /// Dropped by active queue management.
    pub dropped_aqm: u64,
    /// Taken by the loss model.
    pub dropped_random: u64,
    /// Dropped by the policer.
    pub dropped_policer: u64,
    /// Marked CE by the queue.
    pub marked: u64,
    /// Marked CE without a reason, as configured.
    pub marked_falsely: u64,
    /// Changed from CE to ECT(0).
    pub marks_erased: u64,
    /// Changed from ECN-capable or CE to Not-ECT.
    pub bleached: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Time in s during which packets waited for it, so that it should have run at capacity; for the last link of a
    /// route.
    pub saturated_s: f64,
    /// Its measured rate in that time, in bit/s; `None` if there was no such time.
    pub saturated_bps: Option<f64>,
    /// The planned rate in that time: the capacity, in bit/s.
    pub capacity_bps: Option<f64>,
}

impl LinkAccuracy {
    pub(super) fn new(name: &str, stats: &LinkStats, s: &Saturated) -> Self {
        let rate = |time: TimeDelta| (s.bits > 0 && time > TimeDelta::ZERO).then(|| s.bits as f64 / time.as_secs_f64());
        // Without `..`, so that a new counter of the link has to be reported here too.
        let LinkStats {
            offered,
            delivered,
            dropped_queue,
            dropped_aqm,
            dropped_random,
            dropped_policer,
            marked,
            marked_falsely,
            marks_erased,
            bleached,
            duplicated,
        } = *stats;
        Self {
            name: name.to_owned(),
            offered: offered.packets,
            delivered: delivered.packets,
            dropped_queue: dropped_queue.packets,
            dropped_aqm: dropped_aqm.packets,
            dropped_random: dropped_random.packets,
            dropped_policer: dropped_policer.packets,
            marked: marked.packets,
            marked_falsely: marked_falsely.packets,
            marks_erased: marks_erased.packets,
            bleached: bleached.packets,
            duplicated: duplicated.packets,
            saturated_s: s.actual.as_secs_f64(),
            saturated_bps: rate(s.actual),
            capacity_bps: rate(s.planned),
        }
    }
}

/// One side's device.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideCounts {
    /// Packets read.
    pub read: u64,
    /// Of them, packets not of the emulated hosts, which were not forwarded.
    pub foreign: u64,
    /// Packets that the kernel dropped because they were not read in time.
    pub overruns: u64,
    /// Packets written.
    pub written: u64,
    /// Packets refused by the kernel.
    pub write_errors: u64,
}

/// Accuracy of a run of the emulator.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Accuracy {
    /// When the links' time began, in ms since 1970.
    pub began_epoch_ms: f64,
    /// Time by the clock, in s.
    pub seconds: f64,
    /// How late packets were sent; `None` if none was.
    pub delay_error: Option<DelayError>,
    /// The links, in their order.
    pub links: Vec<LinkAccuracy>,
    /// The left device.
    pub left: SideCounts,
    /// The right device.
    pub right: SideCounts,
    /// Packets refused because too many were inside the links already.
    pub refused: u64,
    /// CPU time of the emulator's thread over the time by the clock.
    pub cpu_share: f64,
    /// Whether the thread was scheduled in real time.
    pub realtime: bool,
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "emulated for {:.1} s, {:.1} % of one CPU", self.seconds, 100.0 * self.cpu_share)?;
        writeln!(f, "{}", if self.realtime { "" } else { " (without real-time scheduling)" })?;
        match &self.delay_error {
            Some(e) => writeln!(
                f,
                "packets left later than planned by {:.3} ms on average, {:.3} ms at the 99th percentile, {:.3} ms at most; \
                 {} by more than 1 ms",
                e.mean_ms, e.p99_ms, e.max_ms, e.late
            )?,
            None => writeln!(f, "no packet passed")?,
        }
        for l in &self.links {
            write!(
                f,
                "{}: {} in, {} out, {} dropped by the full queue",
                l.name, l.offered, l.delivered, l.dropped_queue
            )?;
            for (count, what) in [
                (l.dropped_aqm, "dropped by active queue management"),
                (l.dropped_random, "lost at random"),
                (l.dropped_policer, "dropped by the policer"),
                (l.marked, "marked CE"),
                (l.marked_falsely, "marked CE without a reason"),
                (l.marks_erased, "changed from CE to ECT(0)"),
                (l.bleached, "changed to Not-ECT"),
                (l.duplicated, "duplicated"),
            ] {
                if count > 0 {
                    write!(f, ", {count} {what}")?;
                }
            }
            if let (Some(rate), Some(capacity)) = (l.saturated_bps, l.capacity_bps) {
                let (shown, meant, off) = (rate / 1e3, capacity / 1e3, 100.0 * (rate / capacity - 1.0));
                write!(f, "; {shown:.1} kbit/s where {meant:.1} were meant ({off:+.2} %)")?;
                write!(f, ", saturated for {:.1} s", l.saturated_s)?;
            }
            writeln!(f)?;
        }
        for (name, s) in [("left", &self.left), ("right", &self.right)] {
            let troubles = [
                (s.overruns, "lost before they were read: the emulator did not keep up"),
                (s.write_errors, "not taken by the kernel"),
                (s.foreign, "not of the emulated hosts"),
            ];
            for (count, what) in troubles.into_iter().filter(|t| t.0 > 0) {
                writeln!(f, "{name} device: {count} packets {what}")?;
            }
        }
        if self.refused > 0 {
            writeln!(f, "{} packets refused: too many inside the links", self.refused)?;
        }
        Ok(())
    }
}
