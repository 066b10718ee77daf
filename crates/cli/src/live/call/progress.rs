//! The line on standard error that shows a call's progress.

use crate::output::remark;
use indicatif::{ProgressBar, ProgressStyle};
use weir_live::call::{CallObserver, LivePacket, Notice, PacketTotals};
use weir_session::Endpoint;
use weir_units::{TimeDelta, Timestamp};

/// Interval between two updates of the line.
const INTERVAL: TimeDelta = TimeDelta::from_millis(500);

/// Shows rates, round trip and queue of a call's sending end.
pub(crate) struct Progress {
    bar: ProgressBar,
    quiet: bool,
    totals: PacketTotals,
    shown: PacketTotals,
    at: Timestamp,
    frames: u64,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        if let Ok(style) = ProgressStyle::with_template("{elapsed} {msg}") {
            bar.set_style(style);
        }
        let totals = PacketTotals::default();
        Self { bar, quiet, totals, shown: totals, at: Timestamp::ZERO, frames: 0 }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl CallObserver for Progress {
    fn on_notice(&mut self, notice: &Notice) {
        if !self.quiet {
            self.bar.suspend(|| remark(&notice.to_string()));
        }
    }
    fn on_packet(&mut self, packet: &LivePacket<'_>) {
        if packet.sent {
            self.totals.add(packet);
        }
    }
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let time = now - self.at;
        if time < INTERVAL {
            return;
        }
        let bits = 8.0 * (self.totals.rtp_bytes - self.shown.rtp_bytes) as f64;
        let frames = endpoint.stats().send_counters().frames;
        let fps = (frames - self.frames) as f64 / time.as_secs_f64();
        let target = endpoint.target().map_or(0.0, |t| t.media_rate.as_kbps_f64());
        let rtt = endpoint.stats().rtt().map_or("-".into(), |t| format!("{:.1} ms", t.as_millis_f64()));
        let queued = endpoint.stats().queue(now).1.as_millis_f64();
        let kbps = bits / time.as_secs_f64() / 1e3;
        self.bar.set_message(format!(
            "sent {kbps:.0} kbit/s of {target:.0}, {fps:.1} frames/s, round trip {rtt}, queued {queued:.0} ms"
        ));
        (self.shown, self.at, self.frames) = (self.totals, now, frames);
    }
}
