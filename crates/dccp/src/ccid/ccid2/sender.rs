use super::Config;
use super::ack_loss::AckLoss;
use super::ack_ratio::AckRatio;
use super::avoidance::{Acked, Avoidance, Congestion};
use super::burst::Burst;
use super::history::{History, News};
use super::rate::Rate;
use super::timeout::Timeout;
use super::window::Window;
use crate::ccid::{Acknowledgement, CcidSender, Permission, SentPacket, Setup};
use crate::packet::PacketType;
use weir_units::{DataRate, DataSize, Ecn, Seq48, TimeDelta, Timestamp};

/// The half at the data's sender, with an algorithm for the window. A custom algorithm makes a CCID of its own:
///
/// ```
/// use std::sync::Arc;
/// use weir_dccp::ccid::ccid2::{Acked, Avoidance, Config, Congestion, WindowSender};
/// use weir_dccp::ccid::{Registry, Sender, Spec};
///
/// /// A packet a round trip more, an eighth less.
/// struct Gentle(u32);
/// impl Avoidance for Gentle {
///     fn grow(&mut self, cwnd: u32, acked: &Acked) -> u32 {
///         self.0 += acked.packets;
///         let more = self.0 / cwnd;
///         self.0 %= cwnd;
///         cwnd + more
///     }
///     fn on_congestion(&mut self, cwnd: u32, _why: Congestion) -> u32 {
///         cwnd - cwnd.div_ceil(8)
///     }
/// }
///
/// let mut registry = Registry::builtin();
/// let ccid2 = registry.get(2).expect("built in").clone();
/// registry.register(Spec {
///     number: 249, // For experiments.
///     name: "gentle",
///     sender: Arc::new(|setup| {
///         Ok(Sender::Custom(Box::new(WindowSender::new(setup, Config::default(), Gentle(0)))))
///     }),
///     ..ccid2
/// });
/// ```
#[derive(Clone, Debug)]
pub struct WindowSender<A> {
    window: Window<A>,
    pub(super) history: History,
    timeout: Timeout,
    deadline: Option<Timestamp>,
    burst: Burst,
    rate: Rate,
    ack_loss: AckLoss,
    ack_ratio: AckRatio,
    controls_ack_ratio: bool,
    virtual_recovery: bool,
    /// The newest packet sent.
    newest: Option<Seq48>,
    /// The newest sent when the window was last reduced: losses and marks up to it are one event.
    recover: Option<Seq48>,
    /// The newest that filled the window when it was sent.
    full_until: Option<Seq48>,
    /// The next round-trip time is taken of a packet after this one: one a window.
    rtt_after: Option<Seq48>,
    /// A slow receiver requests no growth until this time.
    no_growth_until: Option<Timestamp>,
    /// Data packets since one acknowledged, and whether there has been an acknowledgement to acknowledge since.
    data_since_ack: u32,
    has_ack_to_ack: bool,
    /// Data packets lost, and data packets marked.
    losses: u64,
    marks: u64,
    timeouts: u64,
}

impl<A: Avoidance> WindowSender<A> {
    /// A half-connection's, when it opens.
    pub fn new(setup: &Setup, config: Config, avoidance: A) -> Self {
        Self {
            window: Window::new(&config, setup, avoidance),
            history: History::new(config.num_dup_ack),
            timeout: Timeout::new(&config, setup.rtt),
            deadline: None,
            burst: Burst::new(&config, setup.now),
            rate: Rate::new(&config),
            ack_loss: AckLoss::new(config.num_dup_ack),
            ack_ratio: AckRatio::new(setup.ack_ratio),
            controls_ack_ratio: config.ack_ratio_control,
            virtual_recovery: config.virtual_recovery,
            newest: None,
            recover: None,
            full_until: None,
            rtt_after: None,
            no_growth_until: None,
            data_since_ack: 0,
            has_ack_to_ack: false,
            losses: 0,
            marks: 0,
            timeouts: 0,
        }
    }

    /// Gaps in the other end's numbers reveal lost acknowledgements.
    fn on_other_end_packet(&mut self, seq: Seq48, ndp_count: Option<u64>) {
        if self.ack_loss.on_packet(seq, ndp_count) > 0 {
            self.ack_ratio.on_lost_or_marked();
        }
    }

    fn on_rtt(&mut self, ack: &Acknowledgement<'_>, news: &News) {
        if news.rtt.is_none() || self.rtt_after.is_some_and(|after| !ack.acknowledged.is_after(after)) {
            return;
        }
        if let Some(rtt) = ack.echo_rtt.or(news.rtt) {
            self.timeout.on_sample(rtt);
            self.rtt_after = self.newest;
        }
    }

    /// Congestion since the last reduction: one event for everything sent before it (RFC 4341, section 5).
    fn congestion(&self, news: &News) -> Option<Congestion> {
        let is_new = |seq: Option<Seq48>| seq.is_some_and(|s| self.recover.is_none_or(|r| s.is_after(r)));
        if is_new(news.newest_lost) {
            Some(Congestion::Loss)
        } else {
            is_new(news.newest_marked).then_some(Congestion::Mark)
        }
    }

    fn reduce(&mut self, why: Congestion) {
        self.window.on_congestion(why);
        self.recover = self.newest;
    }

    fn grow(&mut self, ack: &Acknowledgement<'_>, news: &News) {
        let now = ack.now;
        if self.no_growth_until.is_some_and(|until| now < until) {
            return;
        }
        let recovers = self.recover.is_some_and(|r| !ack.acknowledged.is_after(r));
        if self.virtual_recovery && recovers {
            return;
        }
        if news.good > 0 {
            let srtt = self.timeout.rtt().unwrap_or(TimeDelta::ZERO);
            self.window.grow(&Acked { now, packets: news.good, srtt }, self.ack_ratio.get());
        } else if news.unmarked > 0 {
            self.window.on_application_limited(now);
        }
    }
}

impl<A: Avoidance> CcidSender for WindowSender<A> {
    fn may_send(&self, now: Timestamp, _data: DataSize) -> Permission {
        if self.history.pipe() >= self.window.get() {
            return Permission::Blocked;
        }
        self.burst.permission(now, self.window.get(), self.timeout.rtt())
    }

    fn on_packet_sent(&mut self, sent: &SentPacket) {
        let now = sent.now;
        let is_data = sent.packet_type.is_data() || sent.packet_type.may_carry_data() && !sent.data.is_zero();
        self.newest = Some(sent.sequence);
        if sent.packet_type.has_acknowledgement() && sent.packet_type != PacketType::Sync {
            (self.data_since_ack, self.has_ack_to_ack) = (0, false);
        } else if is_data {
            self.data_since_ack = self.data_since_ack.saturating_add(1);
        }
        if !is_data {
            self.history.on_sent(sent.sequence, now, false);
            self.deadline = self.deadline.filter(|_| self.history.pipe() > 0);
            return;
        }
        let timeout = self.timeout.duration();
        self.window.before_sending(now, self.history.pipe(), timeout);
        self.history.on_sent(sent.sequence, now, true);
        let pipe = self.history.pipe();
        if self.window.after_sending(now, pipe, !sent.queued.is_zero(), timeout) {
            self.full_until = Some(sent.sequence);
        }
        self.ack_ratio.bound(self.window.get());
        self.burst.on_sent(now, self.window.get(), self.timeout.rtt());
        self.rate.on_sent(sent.data);
        self.deadline.get_or_insert(now + timeout);
    }

    fn on_acknowledgement(&mut self, ack: &Acknowledgement<'_>) {
        let now = ack.now;
        self.on_other_end_packet(ack.sequence, ack.ndp_count);
        if ack.ecn == Ecn::Ce && !ack.packet_type.may_carry_data() {
            self.ack_ratio.on_lost_or_marked();
        }
        self.has_ack_to_ack |= !ack.ack_vector.is_empty();
        let news = self.history.on_acknowledgement(ack, self.full_until);
        self.on_rtt(ack, &news);
        self.losses += u64::from(news.lost);
        self.marks += u64::from(news.marked);

        if ack.slow_receiver {
            self.no_growth_until = Some(now + self.timeout.rtt().unwrap_or(TimeDelta::ZERO));
        }
        if let Some(why) = self.congestion(&news) {
            self.reduce(why);
        } else {
            self.grow(ack, &news);
        }
        if news.receive_buffer_drops > 0 {
            self.window.on_receive_buffer_drops(news.receive_buffer_drops);
        }
        if ack.slow_receiver || news.dropped > 0 {
            self.window.leave_slow_start();
        }
        self.ack_ratio.bound(self.window.get());
        if let Some(newest) = self.newest.filter(|_| news.acked > 0) {
            self.ack_ratio.on_acknowledged(ack.acknowledged, newest, self.window.get());
        }
        if self.history.pipe() == 0 {
            self.deadline = None;
        } else if news.acked > 0 {
            self.deadline = Some(now + self.timeout.duration());
        }
        self.rate.update(now, self.window.get(), self.timeout.rtt());
    }

    fn on_unacknowledging_packet(&mut self, _now: Timestamp, sequence: Seq48, ndp_count: Option<u64>) {
        self.on_other_end_packet(sequence, ndp_count);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.deadline
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.deadline.is_none_or(|d| now < d) {
            return;
        }
        self.deadline = None;
        self.timeouts += 1;
        self.losses += u64::from(self.history.pipe());
        self.history.clear();
        self.reduce(Congestion::Timeout);
        self.ack_ratio.bound(self.window.get());
        self.timeout.back_off();
        self.rate.update(now, self.window.get(), self.timeout.rtt());
    }

    fn ack_ratio(&self) -> Option<u16> {
        self.controls_ack_ratio.then(|| self.ack_ratio.get())
    }

    fn wants_ack_of_ack(&self, _now: Timestamp) -> bool {
        self.has_ack_to_ack && self.data_since_ack.saturating_add(1) >= self.window.get()
    }

    fn on_idle(&mut self) {
        self.history.shrink();
    }

    fn rate(&self) -> Option<DataRate> {
        self.rate.now(self.window.get(), self.timeout.rtt())
    }
    fn smoothed_rate(&self) -> Option<DataRate> {
        self.rate.smoothed()
    }
    fn rtt(&self) -> Option<TimeDelta> {
        self.timeout.rtt()
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("cwnd", f64::from(self.window.get()));
        if let Some(ssthresh) = self.window.ssthresh() {
            out("ssthresh", f64::from(ssthresh));
        }
        out("pipe", f64::from(self.history.pipe()));
        if let Some(rtt) = self.timeout.rtt() {
            out("rtt_ms", rtt.as_millis_f64());
        }
        out("ack_ratio", f64::from(self.ack_ratio.get()));
        out("losses", self.losses as f64);
        out("marks", self.marks as f64);
        out("timeouts", self.timeouts as f64);
    }
}
