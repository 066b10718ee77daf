//! State of the element, behind its lock.

use super::sending::Sending;
use super::settings::{DEFAULT_START, Settings};
use weir_units::{DataRate, Timestamp};

pub(super) struct State {
    pub(super) settings: Settings,
    /// While the pads are active.
    pub(super) sending: Option<Sending>,
    /// The rate last notified, in bit/s.
    pub(super) estimated: u32,
    /// The stream's caps promise transport-wide feedback.
    pub(super) promised: bool,
    pub(super) flow: Result<gst::FlowSuccess, gst::FlowError>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            sending: None,
            estimated: DEFAULT_START,
            promised: true,
            flow: Err(gst::FlowError::Flushing),
        }
    }
}

impl State {
    /// Takes over the controller's rate; whether it has changed.
    pub(super) fn update(&mut self) -> bool {
        let Some(sending) = &mut self.sending else { return false };
        let rate = u32::try_from(sending.media_rate().as_bps()).unwrap_or(u32::MAX).max(1);
        std::mem::replace(&mut self.estimated, rate) != rate
    }

    /// Begins to control a rate that was held, from where it is.
    pub(super) fn resume(&mut self, now: Timestamp) {
        let rate = DataRate::from_bps(self.estimated.into());
        if let Some(sending) = &mut self.sending
            && let Ok(flow) = self.settings.flow(rate, now)
        {
            sending.replace(flow);
            sending.resume();
        }
    }

    /// The property `stats`.
    pub(super) fn stats(&self) -> gst::Structure {
        let mut stats = gst::Structure::builder("weirbwe-stats").field("controller", &self.settings.controller);
        if let Some(s) = &self.sending {
            let flow = s.flow();
            let rtt = flow.rtt().map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(0));
            let target = flow.target();
            stats = stats
                .field("packets-sent", flow.next())
                .field("bytes-in-flight", flow.bytes_in_flight().as_bytes())
                .field("bytes-queued", s.queued().as_bytes())
                .field("pacing-bitrate", target.pacing_rate.as_bps())
                .field("round-trip-time", rtt)
                .field("packets-discarded", s.counts.discarded)
                .field("feedback-matched", s.counts.matched)
                .field("feedback-unmatched", s.counts.unmatched);
            let mut metrics = gst::Structure::new_empty("metrics");
            flow.metrics(&mut |name, value| metrics.set(name, value));
            stats = stats.field("metrics", metrics);
        }
        stats.build()
    }
}
