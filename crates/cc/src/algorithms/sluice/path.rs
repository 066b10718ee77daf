//! Second stage: the path as the samples so far show it. Capacity, queue, noise, stalls and marks.

mod falls;
mod jitter;
mod l4s;
mod marks;
mod residual;
mod service;
mod stalls;

use super::config::Config;
use super::quantity::{Bits, Rate, Span, Time};
use super::sample::{Sample, Standing};
use falls::Falls;
use jitter::Jitter;
pub(super) use l4s::{L4sRates, NEAR, overfull};
use marks::{Marks, marked_share};
use residual::Residual;
pub(super) use service::Served;
use service::Service;
use stalls::Stalls;

/// Deviation of the delay by stalls, in mean stalls.
const STALL_JITTER: f64 = 0.4;
/// Feedback interval from which this flow's own corrections alternate as jitter does.
const SELDOM: Span = Span::secs(0.12);
/// Busy time over which the service rate of a source that sends in bursts is taken: beside others it follows what was sent, and
/// would carry each burst into the rate.
const BURSTY_SERVICE: Span = Span::secs(0.5);
/// Greatest window of the standing queue.
const LONGEST_WINDOW: Span = Span::secs(0.2);
/// Time in which the queue rises at a fall of the capacity.
const RISE_TIME: Span = Span::secs(0.15);
/// Least time over which a queue is standing for competitive mode.
const PRESSED: Span = Span::secs(0.07);
/// Weight of each message in the size of the larger packets.
const SIZE_WEIGHT: f64 = 0.125;
/// Share of marks in a message that shows a fall as a queue does.
const MOSTLY_MARKED: f64 = 0.5;

/// The sender's state at the arrival of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    /// Arrival of the message.
    pub(super) now: Time,
    /// Departure of the newest packet reported.
    pub(super) newest: Time,
    /// Feedback interval.
    pub(super) interval: Span,
    /// Round-trip time.
    pub(super) rtt: Span,
    /// The rate in force.
    pub(super) rate: Rate,
    /// The share of one flow that this one takes.
    pub(super) weight: f64,
    /// The queueing delay wanted so far.
    pub(super) wanted: Span,
    /// Whether competitive mode is on.
    pub(super) is_competing: bool,
    /// Whether the source sends in bursts.
    pub(super) is_bursty: bool,
}

/// The path at the last message: this stage's result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View {
    /// Service of this flow: the newest after a fall of the capacity, else as `steady`.
    pub(super) service: Option<Served>,
    /// Service of this flow over a longer time.
    pub(super) steady: Option<Served>,
    /// Standing queue.
    pub(super) standing: Standing,
    /// Size of the larger packets.
    pub(super) packet: Bits,
    /// Share of time during which the link was busy with this flow.
    pub(super) busy: f64,
    /// Mean stall.
    pub(super) stall: Span,
    /// Deviation of the delay by jitter and stalls.
    pub(super) jitter: Span,
    /// Deviation of the delay by jitter alone.
    pub(super) noise: Span,
    /// Delay that remains after drains and is no queue.
    pub(super) residual: Span,
    /// Mean share of packets marked.
    pub(super) marked: f64,
    /// Mean share of packets lost.
    pub(super) lost: f64,
    /// Whether classic queue management has marked packets of the message.
    pub(super) is_classic: bool,
    /// Bounds by L4S marks.
    pub(super) l4s: Option<L4sRates>,
}

impl View {
    /// Bound on the rate by L4S marks.
    pub(super) fn bound(&self) -> Option<Rate> {
        self.l4s.map(|l| l.bound)
    }

    /// The rate at which the link serves this flow, if known.
    pub(super) fn capacity(&self) -> Option<Rate> {
        self.service.map(|s| s.rate)
    }
}

/// The path's state.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    service: Service,
    stalls: Stalls,
    jitter: Jitter,
    residual: Residual,
    marks: Marks,
    falls: Falls,
    view: View,
}

impl Path {
    /// Takes a message.
    pub(super) fn observe(&mut self, sample: &Sample, sender: &Sender, config: &Config) {
        let c = &config.noise;
        self.service.push(sample);
        self.stalls.observe(sample.gaps);
        self.jitter.observe(sample.queue.least.delay);
        let (stall, jitter) = (self.stalls.mean(), self.jitter.mean());
        // Stalls make the delay alternate too.
        let noise = (jitter - STALL_JITTER * stall).max(Span::ZERO);
        self.observe_residual(sample, sender, jitter, c.memory.into());
        let window = (c.stall_window * stall).max(c.jitter_window * noise).min(LONGEST_WINDOW);
        let newest = self.service.served_of(config.service.fall_time.into(), config.service.fall_packets);
        let shown = newest.map(|s| s.rate);
        let is_classic = self.marks.observe(sample, sender, shown, config.marks.weight);
        // The bursts on one of several paths are those of the sender that divides the packets: it yields as others do.
        let is_long = sender.is_bursty && sender.weight >= 1.0;
        let least = if is_long { BURSTY_SERVICE } else { config.service.time.into() };
        let steady = self.service.served(least.max(window));
        let mut shown_in = Span::from(config.service.fall_time);
        if sender.is_bursty {
            self.falls.judge(sample.last_departure, self.service.served(falls::JUDGED_BY).map(|s| s.rate));
            shown_in = self.falls.longer() * shown_in;
        }
        let shown_in = shown_in.max(config.service.fall_stalls * stall);
        let fall = steady.and_then(|s| self.fall(sample, s, shown_in, sender.wanted.max(window), config));
        if let Some(steady) = steady.filter(|_| fall.is_some() && sender.is_bursty) {
            self.falls.see(steady.rate);
        }
        self.view = View {
            service: fall.or(steady),
            steady,
            standing: self.service.standing(window).unwrap_or(sample.queue.least),
            packet: self.packet(sample.largest),
            busy: self.service.busy_share(),
            stall,
            jitter,
            noise,
            residual: self.residual.delay(c.residual_share, c.residual_most.into()),
            marked: self.marks.marked,
            lost: self.marks.lost,
            is_classic,
            l4s: self.marks.l4s.rates(),
        };
    }

    /// Size of the larger packets, the messages' largest of which is this one.
    fn packet(&self, largest: Bits) -> Bits {
        let so_far = self.view.packet;
        if so_far > Bits::ZERO { so_far + SIZE_WEIGHT * (largest - so_far) } else { largest }
    }

    /// Takes the unevenness of the delay, by jitter or stalls: both look alike, and what a drain leaves says how much of the delay they
    /// are. A competing flow makes it too, so that nothing is known of it then.
    fn observe_residual(&mut self, sample: &Sample, sender: &Sender, uneven: Span, memory: Span) {
        if sender.is_competing {
            self.residual = Residual::default();
            return;
        }
        let uneven = if sender.interval < SELDOM { uneven } else { Span::ZERO };
        let packet = self.view.steady.map_or(Span::ZERO, |steady| self.view.packet / steady.rate);
        self.residual.observe(sample, uneven, packet, memory);
    }

    /// Service after a fall of the capacity, which shows in service and queue at once: then only the newest counts.
    /// `time` is the busy time in which the service shows it, `long` the queueing delay beyond which the queue may.
    fn fall(&self, sample: &Sample, steady: Served, time: Span, long: Span, config: &Config) -> Option<Served> {
        let c = &config.service;
        let newest = self.service.served_of(time, c.fall_packets)?;
        let shows = newest.rate < steady.rate
            && (marked_share(sample) > MOSTLY_MARKED
                || (sample.queue.least.delay > long && self.rises(sample, config)));
        // Packets that were sent as slowly as they arrived show no fall, however little the link served.
        let rate = newest.rate.max(steady.rate * (newest.sending / newest.busy).min(1.0));
        shows.then_some(Served { rate, ..newest })
    }

    /// Whether the queue has risen in the newest messages as it does at a fall of the capacity.
    fn rises(&self, sample: &Sample, config: &Config) -> bool {
        let before = self.service.standing(RISE_TIME).map_or(Span::ZERO, |s| s.delay);
        let c = &config.service;
        sample.queue.last > before + Span::from(c.fall_rise) + c.fall_noise * self.residual.noise()
    }

    /// The path at the last message.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// Service in the newest busy time.
    pub(super) fn newest_service(&self, config: &Config) -> Option<Served> {
        self.service.served(config.service.fall_time.into())
    }

    /// The queue that counts for competitive mode: at low rates a message reports one packet of a frame's train.
    pub(super) fn pressed(&self) -> Span {
        let standing = self.view.standing.delay;
        self.service.standing(PRESSED).map_or(standing, |s| s.delay.min(standing))
    }

    /// A drain ends at `until`.
    pub(super) fn drain(&mut self, until: Time) {
        self.residual.drain(until);
    }

    /// Whether delay and service are uneven and nothing is known of the delay that remains after drains.
    pub(super) fn is_residual_unknown(&self) -> bool {
        self.residual.is_unknown()
    }

    /// `share` after the response to classic marks.
    pub(super) fn cut_by_marks(&mut self, share: Rate, newest: Time, now: Time, config: &Config) -> Rate {
        if self.view.is_classic { self.marks.cut(share, newest, now, config) } else { share }
    }

    /// Mean share of packets with L4S marks, where they set a bound.
    pub(super) fn mark_alpha(&self) -> f64 {
        self.marks.l4s.alpha()
    }

    /// How uneven delay and service have been of late.
    pub(super) fn residual_noise(&self) -> Span {
        self.residual.noise()
    }
}
