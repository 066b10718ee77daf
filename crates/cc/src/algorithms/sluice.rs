//! Sluice: capacity from the packets' own dispersion, a short queue held on purpose, and growth by doubling while both
//! show room.
//!
//! Each feedback message passes six stages, with a type from each to the next:
//!
//! | stage | from it | contents |
//! |---|---|---|
//! | `sample` | `Sample` | queueing delay, and the time during which the link was busy with this flow's packets |
//! | `path` | `View` | capacity, standing queue, stalls, noise, marks |
//! | `answer` | `Answer` | whether losses answer to the rate, and the bound on it where they do |
//! | `queue` | `Queue` | the queue expected now, the queue wanted |
//! | `mode` | `Step` | competitive mode, drain, busy link or link with room |
//! | `decision` | `Decision` | the rate: on a busy link the rate of service, corrected by the queue; else it grows |

mod answer;
mod config;
mod controller;
mod decision;
mod entry;
mod history;
mod mode;
mod path;
mod quantity;
mod queue;
mod sample;
mod steady;

use crate::controller::Target;
use crate::cue::TransportFeedback;
use crate::parts::rtt;
use crate::spec::Start;
use crate::tunable::SetupError;
use answer::{Answer, Flow, LossAnswer, Used};
pub use config::{
    AnswerConfig, CompeteConfig, Config, CorrectionConfig, DrainConfig, GrowthConfig, MarkConfig, NoiseConfig,
    PacingConfig, QueueConfig, ServiceConfig,
};
use decision::flight::Flight;
use decision::limits::Bounds;
use decision::{Decision, Growth, Rates, Situation};
use history::RateHistory;
use mode::{ModeState, Moment, Pressure, Step};
use path::{Path, Sender};
use quantity::{Bits, Rate, Span, Time};
use queue::Queue;
use sample::timing::Timing;
use sample::usage::Usage;
use sample::{Message, Sample, Sampler};
use steady::Steady;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// RTP header with the extension for transport-wide numbers, in bytes (RFC 3550, RFC 8285).
const RTP_HEADER: DataSize = DataSize::from_bytes(20);
/// Factor on the age at which the least delay expires in competitive mode: a queue that others keep full hides it for as long
/// as they last.
const COMPETING_WINDOW: i64 = 6;
/// Noise of the delay and its deviation of now below which it is even: where a dozen flows hold a queue for each other, both are
/// below half of a millisecond for the most part.
const EVEN: (Span, Span) = (Span::secs(0.0012), Span::secs(0.0016));
/// Queue beyond the one wanted that shows that a capacity announced is too high.
const OVERFULL: Span = Span::secs(0.05);
/// Packets received for each one lost from which most of a message's packets have arrived.
const MOSTLY: u32 = 4;
/// Time for which feedback is missing from which packets sent in it say nothing of losses: a policer lets some pass.
const OUTAGE: Span = Span::secs(1.0);
/// Shortest and longest time until feedback counts as missing.
const PATIENCE: (Span, Span) = (Span::secs(0.025), Span::secs(10.0));

/// Sluice, sender side.
#[derive(Clone, Debug)]
pub struct Sluice {
    config: Config,
    start: Timestamp,
    /// Share of one flow's rate that this flow is coupled to take.
    weight: f64,
    sampler: Sampler,
    usage: Usage,
    timing: Timing,
    path: Path,
    losses: LossAnswer,
    answer: Answer,
    queue: Queue,
    steady: Steady,
    state: ModeState,
    growth: Growth,
    bounds: Bounds,
    history: RateHistory,
    /// When feedback counts as missing.
    due: Option<Timestamp>,
    /// The rate before it was cut since feedback is missing, and since when it is.
    before_silence: Option<(Rate, Time)>,
    flight: Flight,
    /// Data that the link's queue has room for, where stops of the link have overflowed it.
    room: Option<Bits>,
    /// Data that waits at the sender, without the newest frame.
    waiting: Bits,
    /// The target in force: it is asked for after every packet, and changes with cues and timeouts only.
    target: Target,
}

impl Sluice {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("sluice")?;
        let rate = start.limits.clamp(start.rate);
        let mut sluice = Self {
            config,
            start: start.now,
            weight: 1.0,
            sampler: Sampler::default(),
            usage: Usage::default(),
            timing: Timing::default(),
            path: Path::default(),
            losses: LossAnswer::default(),
            answer: Answer::Free,
            queue: Queue::default(),
            steady: Steady::default(),
            state: ModeState::default(),
            growth: Growth::default(),
            bounds: Bounds::new(start.limits),
            history: RateHistory::new(rate.into()),
            due: None,
            before_silence: None,
            flight: Flight::default(),
            room: None,
            waiting: Bits::ZERO,
            target: Target { overhead: RTP_HEADER, ..Target::paced(rate, rate) },
        };
        sluice.update_target();
        Ok(sluice)
    }

    fn time(&self, now: Timestamp) -> Time {
        Time::of(now, self.start)
    }

    /// Sets the rate, within its bounds, and the reference that it is derived from.
    fn set_rates(&mut self, rates: Rates, now: Time) {
        self.history.set(self.bounds.apply(rates.rate, now), rates.reference, now);
    }

    /// Applies the bounds of now to the rate in force.
    fn apply_bounds(&mut self, now: Time) {
        self.set_rates(Rates { rate: self.history.rate(), reference: self.history.reference() }, now);
    }

    fn on_feedback(&mut self, f: &TransportFeedback<'_>) {
        let is_competing = self.state.competition.is_on();
        let window = self.config.service.base_window * if is_competing { COMPETING_WINDOW } else { 1 };
        let (now, in_flight) = (self.time(f.now), !f.bytes_in_flight.is_zero());
        let interval = self.timing.interval();
        let full = self.queue.wanted + answer::QUEUED;
        let waited = if self.path.view().l4s.is_some() { sample::WAITED_MARKED } else { sample::WAITED };
        let message = Message { packets: f.packets, now, interval, start: self.start, window, full, waited };
        let Some(sample) = self.sampler.sample(&message) else { return };
        let rtt = f.rtt.map(|rtt| Span::from(rtt::bounded(rtt)));
        self.flight.report(Bits::new(f.bytes_in_flight.as_bits() as f64));
        self.room = self.sampler.stops().room(now);
        self.end_silence(&sample, now);
        if let Some(rtt) = rtt {
            self.timing.observe_path(now, rtt, sample.queue.last);
        }
        let packets = (self.timing.newest(), self.config.pacing.burst_least.into());
        self.usage.observe(&sample, packets, self.timing.loop_time(), &self.history);
        self.timing.report(now, rtt, sample.last_departure, in_flight);
        let share = self.observe_path(&sample, now);
        let share = self.steady_share(share, now);
        self.answer = self.answer_to(&sample, now);
        let expected = self.expected(share, now);
        let view = self.path.view();
        // Data that the window holds is in no queue of the link.
        let most = self.bounding_room().map(|_| queue::most(self.flight.data(), share));
        self.queue = Queue {
            expected: most.map_or(expected, |most| expected.min(most)),
            wanted: queue::wanted(view, share, self.weight, &self.config.queue),
        };
        let step = self.next_step(&sample, share, rtt.unwrap_or(self.timing.rtt()), now);
        let in_force = Rates { rate: self.history.rate(), reference: self.history.reference() };
        let decision = self.decide(step, share, now).heed(self.answer, in_force);
        self.state.mode = decision.mode;
        if let Some(rates) = decision.rates {
            self.set_rates(rates, now);
        }
        self.arm(f.now, in_flight);
    }

    /// A message has come. The rate returns to what it was before the silence where that was not the packets'.
    fn end_silence(&mut self, sample: &Sample, now: Time) {
        let have_arrived = sample.received > MOSTLY * sample.lost;
        let is_feedbacks = self.timing.judge_silence(now, have_arrived.then_some(sample.queue.most));
        let Some((rate, since)) = self.before_silence.take() else { return };
        if is_feedbacks {
            self.set_rates(Rates::same(rate), now);
        }
        if now - since > OUTAGE {
            self.losses.pass_over(now);
            self.usage.interrupt();
        }
    }

    /// The second stage. Returns this flow's share of the link.
    fn observe_path(&mut self, sample: &Sample, now: Time) -> Rate {
        let sender = Sender {
            now,
            newest: self.timing.newest(),
            interval: self.timing.interval(),
            rtt: self.timing.rtt(),
            rate: self.history.rate(),
            weight: self.weight,
            wanted: self.queue.wanted,
            is_competing: self.state.competition.is_on(),
            is_bursty: self.usage.burst() > self.config.pacing.burst_least.into(),
        };
        self.path.observe(sample, &sender, &self.config);
        let view = self.path.view();
        let is_overfull = view.standing.delay > self.queue.wanted + OVERFULL;
        self.bounds.notice.compare(view.capacity(), is_overfull, sender.rate, now);
        let service = view.service;
        let share = service.map_or(sender.rate, |s| decision::share(s, sample.last_departure, &self.history));
        self.path.cut_by_marks(share, sender.newest, now, &self.config)
    }

    /// Whether bursts have lasted. Those on one of several paths are the sender's that divides the packets. In a long loop the queue is
    /// foreseen, and at its low rates single packets look like bursts.
    fn is_lasting(&self) -> bool {
        self.weight >= 1.0
            && self.usage.is_lasting(self.config.pacing.burst_least.into())
            && !decision::foresight::is_due(self.timing.loop_time(), self.path.view())
    }

    /// This flow's share of the link, steadier where the source has sent in bursts for long and the capacity has not fallen.
    fn steady_share(&mut self, share: Rate, now: Time) -> Rate {
        let view = self.path.view();
        let has_fallen = view.service.zip(view.steady).is_some_and(|(service, steady)| service.rate < steady.rate);
        if self.is_lasting() && !has_fallen {
            return self.steady.share(share, self.usage.sent_of_late(), now);
        }
        self.steady.interrupt();
        share
    }

    /// The queue expected, without its mean error where the source has sent in bursts for long.
    fn expected(&mut self, share: Rate, now: Time) -> Span {
        let view = self.path.view();
        let expected = queue::expected(view, &self.history, share, self.usage.arrived(), now);
        if !self.is_lasting() {
            return expected;
        }
        let is_held = self.state.mode == mode::Mode::Hold;
        self.steady.expected(expected, (view.standing.delay, self.queue.wanted), is_held, now)
    }

    /// The third stage.
    fn answer_to(&mut self, sample: &Sample, now: Time) -> Answer {
        let flow = Flow {
            now,
            newest: self.timing.newest(),
            excess: self.path.view().standing.delay - self.queue.wanted,
            is_competing: self.state.competition.is_on(),
            used: Used { rate: self.history.rate(), share: self.usage.sent() },
        };
        self.losses.observe(sample, &flow, &self.config.answer)
    }

    /// The fifth stage.
    fn next_step(&mut self, sample: &Sample, share: Rate, rtt: Span, now: Time) -> Step {
        let view = self.path.view();
        let pressure = Pressure {
            now,
            queue: self.path.pressed(),
            wanted: self.queue.wanted,
            most: self.config.queue.most.into(),
            rtt,
            share,
            served: view.steady.map(|s| s.rate),
            sent: view.steady.and_then(|s| self.history.mean(s.since, sample.last_departure)),
            source: view.steady.and_then(|s| s.sent()),
            departure: sample.last_departure,
            lost: sample.lost > 0,
        };
        let was_competing = self.state.competition.is_on();
        if let Some(step) = self.state.compete(view, self.queue, &pressure, &self.config) {
            return step;
        }
        if was_competing {
            self.set_rates(Rates::same(self.history.rate()), now);
            self.growth.resume(self.timing.newest());
        }
        let is_same = sample.is_same && self.growth.has_fallen(share);
        let is_doubtful = self.path.is_residual_unknown() || is_same;
        let view = self.path.view();
        let noise = self.path.residual_noise();
        let moment = Moment {
            now,
            departure: sample.queue.least.departure,
            sent: sample.queue.least.sent,
            interval: self.timing.interval(),
            delay: sample.base + sample.queue.least.delay,
            service: view.steady.map(|s| s.rate),
            is_even: noise < EVEN.0 && view.jitter < EVEN.1,
            is_noisy: noise >= EVEN.0,
        };
        self.state.step((view, self.queue, share), is_doubtful, &moment, &self.config)
    }

    /// The sixth stage.
    fn decide(&mut self, step: Step, share: Rate, now: Time) -> Decision {
        let (rate, config) = (self.history.rate(), &self.config);
        let view = self.path.view();
        let foreseen = decision::foresight::is_due(self.timing.loop_time(), view).then(|| {
            let known = share.max(self.growth.known());
            queue::expected(view, &self.history, known, self.usage.arrived(), now)
        });
        let situation = Situation {
            now,
            newest: self.timing.newest(),
            interval: self.timing.interval(),
            used: self.usage.sent(),
            view,
            share,
            queue: self.queue,
            foreseen,
            is_lasting: self.is_lasting(),
            is_starting: self.state.is_starting,
            hint: self.bounds.notice.hint(now),
            answer: self.answer.bound(),
        };
        match step {
            Step::Compete(rate) => self.growth.compete(rate, now),
            Step::BeginDrain(drain) => {
                self.path.drain(drain.until);
                self.growth.drain(share, drain)
            }
            Step::Drain => Decision { mode: mode::Mode::Drain, rates: None },
            Step::Hold => self.growth.hold(&situation, rate, config),
            Step::Grow => self.growth.grow(&situation, rate, self.path.newest_service(config), config),
        }
    }

    /// Sets the time at which feedback counts as missing.
    fn arm(&mut self, now: Timestamp, in_flight: bool) {
        self.due = in_flight.then(|| {
            let patience = self.timing.patience(self.time(now)).clamp(PATIENCE.0, PATIENCE.1);
            now + TimeDelta::from(patience)
        });
    }

    /// Data that the link's queue has room for, where it bounds what is in flight. Where others fill that queue, this flow's share of it
    /// would only fall.
    fn bounding_room(&self) -> Option<Bits> {
        let is_alone = !self.state.is_starting && !self.state.competition.is_on();
        self.room.filter(|_| is_alone && self.path.view().l4s.is_none())
    }

    /// Derives the target from the state.
    fn update_target(&mut self) {
        let rate = self.history.rate();
        let pacing = self.growth.pacing(rate, self.path.view(), self.answer.bound(), self.state.is_starting);
        let is_marked = self.path.view().l4s.is_some();
        let time = self.timing.report_time() + self.queue.wanted;
        let reference = rate.max(self.history.reference());
        let window = self.flight.bound(self.bounding_room(), reference, time, self.waiting);
        self.target.window = window.map(|w| DataSize::from_bytes((w.as_bits() / 8.0) as u64));
        let media = if is_marked || self.flight.is_held() { decision::pacing::media(rate, self.waiting) } else { rate };
        self.target.media_rate = self.bounds.media_rate(media);
        let pacing = pacing.of_source(self.usage.burst(), &self.config.pacing);
        self.target.pacing_rate = self.flight.pacing(pacing, rate, self.waiting).into();
    }
}

#[cfg(test)]
mod tests;
