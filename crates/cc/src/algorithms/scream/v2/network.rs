//! Network congestion control: from feedback to the reference window (draft, section 4.2).

use super::super::loss::LossDetector;
use super::config::Config;
use super::flight::{LargestPacket, PeakFlight};
use super::l4s::MarkedShare;
use super::queue_delay::QueueDelay;
use super::window::{Conditions, Congestion, Window};
use crate::cue::{SentPacket, TransportFeedback};
use crate::parts::delay_correction::DelayCorrection;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// Upper bound of a round-trip time.
const LONGEST_RTT: TimeDelta = TimeDelta::from_secs(60);
/// Weight of a round-trip time sample, and of its average in the slower one (RFC 6298; C++: both).
const RTT_DIVISOR: i64 = 8;
/// The same for a shorter round trip while the source uses little of the window (C++; draft, section 6: "a longer time
/// constant").
const IDLE_RTT_DIVISOR: i64 = 1_024;
/// Share of the target below which the rate acknowledged is that of an idle source. Chosen here: encoders come within a fifth of their
/// target. The C++ looks at the window alone.
const IDLE_SHARE: f64 = 0.8;
/// Period over which the acknowledged rate is measured (C++; draft, section 4.5.3: two frame periods).
const RATE_PERIOD: TimeDelta = TimeDelta::from_millis(100);
/// Share of the upper bound from which the target counts as at its bound for the flight's bound on the window (C++).
const NEAR_HIGHEST: f64 = 0.95;
/// Seconds added to the round-trip time where a window follows from a rate, or a rate from a window, for coarse clocks
/// (C++).
pub(super) const RTT_GUARD: f64 = 0.001;

/// The media rate control's side of an update of the window, rates in bit/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct MediaState {
    /// target_bitrate and TARGET_BITRATE_MAX.
    pub(super) target: f64,
    pub(super) highest: f64,
    /// Whether a frame has come since the last feedback.
    pub(super) has_new_frame: bool,
}

/// Reference window, queue delay and events of one path.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) window: Window,
    correction: DelayCorrection,
    pub(super) queue_delay: QueueDelay,
    pub(super) marks: MarkedShare,
    pub(super) losses: LossDetector,
    flight: PeakFlight,
    largest: LargestPacket,
    in_flight: f64,
    /// Smoothed once, and twice: s_rtt.
    quick_rtt: TimeDelta,
    srtt: TimeDelta,
    srtt_at: Timestamp,
    is_rtt_falling: bool,
    /// bytes_newly_acked without marked ones, since the last update of the window.
    unmarked: f64,
    /// loss_rate.
    loss_rate: f64,
    reduced_at: Timestamp,
    /// When losses reduced the window, and whether there have been any since the last reduction.
    loss_at: Timestamp,
    has_lost: bool,
    updated_at: Timestamp,
    acknowledged: f64,
    acknowledged_rate: f64,
    rate_since: Timestamp,
}

impl Network {
    pub(super) fn new(config: &Config, now: Timestamp) -> Self {
        Self {
            window: Window::new(config, now),
            correction: DelayCorrection::new(config.follows_path),
            queue_delay: QueueDelay::new(config, now),
            marks: MarkedShare::new(config, now),
            losses: LossDetector::new(config.reordering_window),
            flight: PeakFlight::new(now),
            largest: LargestPacket::new(now),
            in_flight: 0.0,
            quick_rtt: config.initial_rtt,
            srtt: config.initial_rtt,
            srtt_at: now,
            is_rtt_falling: false,
            unmarked: 0.0,
            loss_rate: 0.0,
            reduced_at: now,
            loss_at: now,
            has_lost: false,
            updated_at: now,
            acknowledged: 0.0,
            acknowledged_rate: 0.0,
            rate_since: now,
        }
    }

    pub(super) fn on_packet_sent(&mut self, packet: &SentPacket, config: &Config) {
        self.in_flight = packet.bytes_in_flight.as_bytes() as f64;
        self.flight.on_flight(self.in_flight);
        self.largest.on_packet(packet.size.as_bytes() as f64, packet.now);
        self.window.make_room(self.largest.get(), config);
    }

    /// Takes feedback. Returns the event that reduced the window, if one did.
    pub(super) fn on_feedback(
        &mut self,
        feedback: &TransportFeedback<'_>,
        media: &MediaState,
        config: &Config,
    ) -> Option<Congestion> {
        let now = feedback.now;
        self.flight.on_flight(self.in_flight);
        let left = feedback.bytes_in_flight.as_bytes() as f64;
        let newly = (self.in_flight - left).max(0.0);
        self.in_flight = left;
        self.measure(newly, now);
        let mut lost = false;
        let mut marked_bytes = 0.0;
        self.correction.on_feedback(feedback);
        for p in feedback.packets {
            let is_late = p.was_lost && p.arrival.is_some();
            if !is_late {
                self.average_loss(p.arrival.is_none(), config);
            }
            let Some(delay) = self.correction.of(p) else {
                lost |= self.losses.on_missing(p.sequence, now);
                continue;
            };
            self.queue_delay.on_packet(delay, now, config);
            let is_marked = p.ecn == Ecn::Ce;
            self.marks.on_packet(is_marked);
            marked_bytes += if is_marked { p.size.as_bytes() as f64 } else { 0.0 };
            if is_late {
                self.losses.on_late_arrival(p.sequence, now, self.srtt);
            }
        }
        lost |= self.losses.judge(now);
        self.unmarked += (newly - marked_bytes).max(0.0);
        if let Some(rtt) = feedback.rtt {
            self.on_rtt(rtt, media, now);
        }
        self.marks.update(now, self.srtt, config);
        self.queue_delay.average(now, self.srtt, config);
        let event = self.event(lost, marked_bytes > 0.0, now, config);
        let is_due = now - self.updated_at > self.srtt.min(config.reduction_interval);
        if event.is_some() || is_due || media.has_new_frame {
            self.update(event, now, media, config);
        }
        event
    }

    /// The event to react to, once per shorter of round trip and `reduction_interval`; losses go before the others (section 4.2.2.1),
    /// at most once a round trip (C++), and are not forgotten before the next event.
    fn event(&mut self, lost: bool, marked: bool, now: Timestamp, config: &Config) -> Option<Congestion> {
        let since = now - self.reduced_at;
        let is_due = since > self.srtt.min(config.reduction_interval);
        let share = self.queue_delay.averaged() / config.qdelay_target.as_secs_f64();
        let is_congested =
            config.loss_rate_threshold == 0.0 || self.loss_rate > config.loss_rate_threshold || share > 0.25;
        self.has_lost = (self.has_lost || lost) && is_congested;
        let event = if self.has_lost && is_due && now - self.loss_at > self.srtt {
            self.loss_at = now;
            Congestion::Loss
        } else if marked && is_due && !(self.is_rtt_falling && self.marks.are_all_marked()) {
            Congestion::Ecn
        } else if share > 0.5 && is_due {
            Congestion::Delay
        } else {
            return None;
        };
        (self.reduced_at, self.has_lost) = (now, false);
        Some(event)
    }

    fn update(&mut self, event: Option<Congestion>, now: Timestamp, media: &MediaState, config: &Config) {
        self.updated_at = now;
        let conditions = Conditions {
            now,
            srtt: self.srtt,
            mss: self.largest.get(),
            alpha: self.marks.alpha(),
            virtual_alpha: self.queue_delay.virtual_alpha(config),
            queue_share: self.queue_delay.current() / config.qdelay_target.as_secs_f64(),
            delay_scale: self.queue_delay.window_scale(config),
            is_target_low: media.target < self.acknowledged_rate * config.acked_bitrate_margin,
            is_target_highest: media.target >= media.highest,
            peak_flight: self.flight.peak(),
            previous_flight: self.flight.previous(),
        };
        if media.target > NEAR_HIGHEST * media.highest {
            let round_trip = self.srtt.as_secs_f64() + RTT_GUARD;
            let enough = config.packet_pacing_headroom * media.highest / 8.0 * round_trip;
            self.window.limit(self.flight.longest_peak().max(enough));
        }
        self.flight.turn(now, config);
        self.window.update(event, core::mem::take(&mut self.unmarked), &conditions, config);
    }

    /// RFC 6298's smoothing, twice: the second over samples a round trip apart.
    fn on_rtt(&mut self, rtt: TimeDelta, media: &MediaState, now: Timestamp) {
        let before = self.quick_rtt;
        self.quick_rtt += (rtt.max(TimeDelta::ZERO).min(LONGEST_RTT) - before) / RTT_DIVISOR;
        self.is_rtt_falling = self.quick_rtt < before;
        if now - self.srtt_at <= self.quick_rtt {
            return;
        }
        self.srtt_at = now;
        // A source that sends what the target allows is not idle: a target that is low since s_rtt is high would keep it high.
        let is_limited = self.window.is_application_limited() && self.acknowledged_rate < IDLE_SHARE * media.target;
        let is_idle = is_limited && self.quick_rtt < self.srtt;
        self.srtt += (self.quick_rtt - self.srtt) / if is_idle { IDLE_RTT_DIVISOR } else { RTT_DIVISOR };
    }

    /// loss_rate over two round trips, or over 4 / LOSS_RATE_THRESHOLD packets if that is more (section 4.5.2).
    fn average_loss(&mut self, is_lost: bool, config: &Config) {
        let two_round_trips = self.largest.get() / self.window.size().max(1.0) / 2.0;
        let weight = (config.loss_rate_threshold / 4.0).min(two_round_trips);
        self.loss_rate += weight * (f64::from(u8::from(is_lost)) - self.loss_rate);
    }

    fn measure(&mut self, newly: f64, now: Timestamp) {
        self.acknowledged += newly;
        let elapsed = now - self.rate_since;
        if elapsed > RATE_PERIOD {
            self.acknowledged_rate = self.acknowledged * 8.0 / elapsed.as_secs_f64();
            (self.acknowledged, self.rate_since) = (0.0, now);
        }
    }

    /// s_rtt.
    pub(super) fn srtt(&self) -> TimeDelta {
        self.srtt
    }
    /// MSS in bytes.
    pub(super) fn mss(&self) -> f64 {
        self.largest.get()
    }
    /// bytes_in_flight.
    pub(super) fn in_flight(&self) -> DataSize {
        DataSize::from_bytes(self.in_flight as u64)
    }
    /// loss_rate.
    pub(super) fn loss_rate(&self) -> f64 {
        self.loss_rate
    }
    /// acked_bitrate.
    pub(super) fn acknowledged_rate(&self) -> DataRate {
        DataRate::from_bps_f64(self.acknowledged_rate)
    }
    /// Bytes that may be in flight: send_wnd plus bytes_in_flight (section 4.3.1), and a packet (C++).
    pub(super) fn limit(&self, config: &Config) -> DataSize {
        let range = config.ref_wnd_overhead_max - config.ref_wnd_overhead_min;
        let overhead = config.ref_wnd_overhead_min + range * self.queue_delay.window_scale(config);
        DataSize::from_bytes((self.window.size() * overhead + self.largest.get()) as u64)
    }
}
