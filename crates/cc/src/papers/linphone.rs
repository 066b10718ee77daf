//! Rate control of linphone, an application of 2012, over UDP and over DCCP (S. Jero, 2013, sections 2.2.2, 3.2 and appendix A).
//!
//! Over UDP it uses RTCP reports only, and sends each frame in one burst. Over DCCP, whose congestion control decides
//! when packets are sent, it lowers the rate when the send queue refuses packets (`ccid2`, `ccid5`), and follows the
//! rate that the transport reports (`ccid3`, `ccid4`, `ccid-video`). The files are appendix A.2's three parts:
//! `analyser` interprets feedback, the state machine below decides on the reaction, and `driver` sets the encoder's
//! rate. `interval` is beside them: how often it may be set.
//!
//! The encoder's actual rate is measured from frames as they enter the RTP queue, including those whose packets are
//! refused. Where the code and the text disagree, the code is followed: see [`Config`].

mod analyser;
mod config;
mod driver;
mod interval;
#[cfg(test)]
mod tests;

pub use config::{Config, Over};

use crate::controller::{Controller, Limits, Target};
use crate::cue::{Cue, QueueState, SentPacket};
use crate::parts::incoming_rate::IncomingRate;
use crate::spec::{Algorithm, NoReceiver, Pair, ReportPlan, Setup, Spec, Start, Transport};
use crate::tunable::SetupError;
use analyser::{Action, Analyser};
use driver::Driver;
use interval::Interval;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// RTCP's interval: 5 s, RFC 3550's minimum (S. Jero, 2013, section 2.2.2; section 4.3.2 has 50 s for ten reports).
const REPORTS: ReportPlan = ReportPlan::every(TimeDelta::from_secs(5));

/// The controller's state (A.2, bitratecontrol.c).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Initial, or the limit is reached.
    Init,
    /// No congestion: good reports are counted.
    Stable,
    /// The rate was lowered, and an improvement is awaited.
    Probing,
    /// The rate is raised in steps.
    ProbingUp,
}

/// The sender half; there is no receiver half.
#[derive(Clone, Debug)]
pub struct Linphone {
    config: Config,
    over: Over,
    limits: Limits,
    analyser: Analyser,
    driver: Driver,
    state: State,
    /// Reports in [`State::Stable`].
    stable: u32,
    /// Reports since the last step in [`State::ProbingUp`].
    probing: u32,
    /// The encoder's actual rate.
    encoder: IncomingRate,
    encoder_bps: Option<f64>,
    interval: Interval,
    last_change: Option<Timestamp>,
    last_reject: Option<Timestamp>,
    last_sample: Option<Timestamp>,
    transport_bps: f64,
    decreases: u64,
    increases: u64,
    rejects: u64,
}

impl Linphone {
    /// A controller over plain datagrams. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        Self::over(Over::Udp, config, start)
    }

    /// A controller over this transport; its defaults are [`Config::over`]. Errors: see [`Config::check`].
    pub fn over(over: Over, config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("linphone")?;
        let rate = if config.start_at_max { config.max_rate } else { start.rate };
        Ok(Self {
            config,
            over,
            limits: start.limits,
            analyser: Analyser::default(),
            driver: Driver::new(rate.as_bps_f64(), &start.limits, &config),
            state: State::Init,
            stable: 0,
            probing: 0,
            encoder: IncomingRate::new(config.encoder_window),
            encoder_bps: None,
            interval: Interval::new(&config),
            last_change: None,
            last_reject: None,
            last_sample: None,
            transport_bps: f64::NAN,
            decreases: 0,
            increases: 0,
            rejects: 0,
        })
    }

    /// Whether less than the update interval has passed since `then`.
    fn is_within(&self, then: Option<Timestamp>, now: Timestamp) -> bool {
        then.is_some_and(|t| now.saturating_since(t) <= self.interval.get())
    }

    /// Applies the recommended decrease; returns whether there was one.
    fn lower(&mut self, now: Timestamp) -> bool {
        let Action::Decrease(share) = self.analyser.suggest(&self.config) else { return false };
        self.driver.decrease(share, self.encoder_bps, &self.config);
        self.state = State::Probing;
        self.last_change = Some(now);
        self.decreases += 1;
        true
    }

    /// Raises the rate by a step; returns `false` if the limit is reached.
    fn raise(&mut self, now: Timestamp) -> bool {
        self.probing = 0;
        self.last_change = Some(now);
        self.increases += 1;
        self.driver.increase(self.config.increase, self.encoder_bps, &self.config)
    }

    /// Runs the state machine for new feedback.
    fn step(&mut self, now: Timestamp) {
        self.encoder_bps = self.encoder.bps(now);
        match self.state {
            State::Init | State::Stable => {
                if self.state == State::Stable {
                    self.stable = self.stable.saturating_add(1);
                }
                if !self.lower(now) && self.stable >= self.config.stable_reports {
                    self.raise(now);
                    self.state = State::ProbingUp;
                }
            }
            State::Probing => {
                self.stable = 0;
                if self.analyser.has_improved(&self.config) {
                    self.state = State::Stable;
                } else {
                    self.lower(now);
                }
            }
            State::ProbingUp => {
                self.stable = 0;
                self.probing = self.probing.saturating_add(1);
                if !self.lower(now) && self.probing >= self.config.probing_reports && !self.raise(now) {
                    self.state = State::Init;
                }
            }
        }
    }

    fn on_transport_rate(&mut self, rate: DataRate, now: Timestamp) {
        self.transport_bps = rate.as_bps_f64();
        if self.last_sample.is_some_and(|t| now.saturating_since(t) < self.config.sample_interval) {
            return;
        }
        self.last_sample = Some(now);
        if self.is_within(self.last_change, now) {
            return;
        }
        (self.state, self.stable) = (State::Stable, 0);
        let before = self.driver.nominal;
        if self.driver.follow(self.transport_bps, &self.config) {
            self.last_change = Some(now);
            self.decreases += u64::from(self.driver.nominal < before);
            self.increases += u64::from(self.driver.nominal > before);
        }
    }
}

/// An entry in the registry: the application over one transport.
struct Variant {
    name: &'static str,
    ccid: Option<u8>,
    over: Over,
    summary: &'static str,
}

const VARIANTS: [Variant; 6] = [
    Variant {
        name: "linphone",
        ccid: None,
        over: Over::Udp,
        summary: "an application of 2012: loss and round trip by RTCP reports, unpaced frames",
    },
    Variant {
        name: "ccid2",
        ccid: Some(2),
        over: Over::Window,
        summary: "video over DCCP, TCP-like: down when packets are refused, up by probing",
    },
    Variant {
        name: "ccid3",
        ccid: Some(3),
        over: Over::Rate,
        summary: "video over DCCP, TFRC: follows the rate that the transport allows",
    },
    Variant { name: "ccid4", ccid: Some(4), over: Over::Rate, summary: "as ccid3, with TFRC for small packets" },
    Variant { name: "ccid5", ccid: Some(5), over: Over::Window, summary: "as ccid2, with CUBIC" },
    Variant {
        name: "ccid-video",
        ccid: Some(248),
        over: Over::Rate,
        summary: "as ccid3, with congestion control that knows of frames",
    },
];

impl Algorithm for Linphone {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        let spec = |v: &Variant| Spec {
            reports: Some(REPORTS),
            transport: v.ccid.map_or(Transport::Udp, |ccid| Transport::Dccp { ccid }),
            params: Config::params_over(v.over),
            ..Spec::new(v.name, v.summary, "S. Jero, 2013, section 3.2 and appendix A")
        };
        VARIANTS.iter().map(spec).collect()
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        let over = VARIANTS.iter().find(|v| v.name == name).map_or(Over::Udp, |v| v.over);
        let mut config = Config::over(over);
        config.set_all(name, &setup.params)?;
        Ok(Pair::alone(Self::over(over, config, &setup.start())?))
    }
}

impl Controller for Linphone {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.encoder.on_bytes(queue.added, queue.now);
        self.interval.on_frame(queue.now);
        false
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::ReportBlock(block) if !self.is_within(self.last_change, block.now) => {
                if self.over == Over::Udp {
                    self.analyser.on_report(block);
                }
                self.step(block.now);
            }
            Cue::SendRejected(rejected) if self.over != Over::Udp => {
                self.rejects += 1;
                let now = rejected.now;
                if self.is_within(self.last_reject, now) {
                    return;
                }
                self.last_reject = Some(now);
                if !self.is_within(self.last_change, now) {
                    self.analyser.on_refused();
                    self.step(now);
                }
            }
            Cue::TransportRate(allowed) if self.over != Over::Udp => {
                if let Some(rtt) = allowed.rtt {
                    self.interval.on_rtt(rtt, allowed.now);
                }
                if !self.config.follow_rate {
                    return;
                }
                let rate = if self.config.follow_smoothed { allowed.smoothed } else { allowed.rate };
                self.on_transport_rate(rate, allowed.now);
            }
            _ => {}
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.driver.set_limits(&limits, &self.config);
    }
    fn target(&self) -> Target {
        Target::paced(self.limits.clamp(DataRate::from_bps_f64(self.driver.nominal)), Target::UNPACED)
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("nominal_bps", self.driver.nominal);
        out("encoder_bps", self.encoder_bps.unwrap_or(f64::NAN));
        out("transport_bps", self.transport_bps);
        out("update_interval_ms", self.interval.get().as_millis_f64());
        out("state", f64::from(self.state as u8));
        out("decreases", self.decreases as f64);
        out("increases", self.increases as f64);
        out("rejects", self.rejects as f64);
    }
}
