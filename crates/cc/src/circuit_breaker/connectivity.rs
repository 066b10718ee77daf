//! Timeouts of reports and of media (RFC 8083, sections 4.1 and 4.2).

use super::config::{Config, Rules, Timing};
use weir_units::{TimeDelta, Timestamp};

/// Consecutive reports without new media that trip (V. Singh's dissertation, section 3.7.1).
const THESIS_MEDIA_TIMEOUT: u32 = 2;

/// The RTCP timeout.
#[derive(Clone, Debug, Default)]
pub(super) struct RtcpTimeout {
    /// Departure of the first packet since the last report.
    waiting_since: Option<Timestamp>,
}

impl RtcpTimeout {
    pub(super) fn on_sent(&mut self, now: Timestamp) {
        self.waiting_since.get_or_insert(now);
    }

    /// A report was received, or sending has stopped.
    pub(super) fn cancel(&mut self) {
        self.waiting_since = None;
    }

    pub(super) fn deadline(&self, timing: &Timing) -> Option<Timestamp> {
        self.waiting_since.map(|t| t + timing.rtcp_timeout())
    }

    /// Whether the timeout has expired. A sender that was silent for the last third of it counts as stopped and does
    /// not time out.
    pub(super) fn expired(&mut self, now: Timestamp, last_sent: Option<Timestamp>, timing: &Timing) -> bool {
        if self.deadline(timing).is_none_or(|t| t > now) {
            return false;
        }
        let patience = (timing.rtcp_timeout() / 3).max(timing.tf);
        if last_sent.is_none_or(|t| now - t > patience) {
            self.cancel();
            return false;
        }
        true
    }
}

/// The media timeout.
#[derive(Clone, Debug, Default)]
pub(super) struct MediaTimeout {
    highest: Option<u64>,
    /// MEDIA_TIMEOUT in reports; `None` while it is cancelled.
    timeout: Option<u32>,
    without_media: u32,
}

impl MediaTimeout {
    pub(super) fn on_sent(&mut self, timing: &Timing, config: &Config) {
        if self.timeout.is_none() {
            self.timeout = Some(Self::threshold(timing, config));
            self.without_media = 0;
        }
    }

    /// Sending has stopped.
    pub(super) fn cancel(&mut self) {
        self.timeout = None;
    }

    fn threshold(timing: &Timing, config: &Config) -> u32 {
        match config.rules {
            Rules::Rfc8083 => timing.media_timeout(config.non_reporting_threshold),
            Rules::Thesis2013 => THESIS_MEDIA_TIMEOUT,
        }
    }

    /// The current MEDIA_TIMEOUT.
    pub(super) fn reports(&self) -> Option<u32> {
        self.timeout
    }

    /// Handles a report block; returns whether the media timeout has expired.
    pub(super) fn on_report(&mut self, highest: u64, sending: bool, timing: &Timing, config: &Config) -> bool {
        let advanced = self.highest.is_none_or(|h| highest > h);
        self.highest = self.highest.max(Some(highest));
        if !sending {
            self.cancel();
            return false;
        }
        let threshold = Self::threshold(timing, config);
        if advanced {
            (self.timeout, self.without_media) = (Some(threshold), 0);
            return false;
        }
        let timeout = self.timeout.map_or(threshold, |t| t.max(threshold));
        self.timeout = Some(timeout);
        self.without_media = self.without_media.saturating_add(1);
        self.without_media >= timeout
    }
}

/// Whether the sender still counts as sending: it sent a packet within twice the longest of Tf, Tr and Tdr.
pub(super) fn is_sending(now: Timestamp, last_sent: Option<Timestamp>, timing: &Timing) -> bool {
    last_sent.is_some_and(|t| now - t <= timing.longest() * 2)
}

/// Duration of a media timeout of `reports` reports.
pub(super) fn reports_last(reports: u32, timing: &Timing) -> TimeDelta {
    timing.tdr * i64::from(reports)
}
