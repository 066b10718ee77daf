//! Copa: a window that moves towards a rate of 1 / (δ · queueing delay), in packets.
//!
//! V. Arun and H. Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018, section 2. In the order of
//! a feedback message:
//!
//! `round_trips` (least round-trip time of 10 s, standing one of half a smoothed one) → `mode` (δ: 0.5, or less beside flows that fill
//! buffers) → the window, by `velocity` → target.
//!
//! | rule | source |
//! |---|---|
//! | up while window / standing RTT <= 1 / (δ (standing RTT - least RTT)), else down, by v / (δ window) for each packet | section 2.1, steps 1 to 3 |
//! | v doubles each round trip from the third in one direction on, and is 1 after a change | section 2.1, step 4 |
//! | slow start: one packet more for each packet, until the first step down | section 2.1 |
//! | pacing at 2 window / standing RTT | section 2.1 |
//! | competitive mode while the queue has not been nearly empty for five round trips: 1/δ one more a round trip, half after a loss | section 2.2 |
//! | at most a doubling a round trip: v <= δ window; at least 2 packets | the authors' program |
//! | 0.7 of the window where 30 % of the packets of two round trips are lost | the authors' program |
//! | v = 1 as soon as a step is against the direction | mvfst |
//!
//! The authors' program is venkatarun95/genericCC at 18299d6 (`markoviancc.cc`, `estimators.cc`), mvfst Meta's QUIC (facebook/mvfst at
//! 979f26a, `Copa.cpp`). They differ from the paper in the test for an empty queue (the program: delays of the last two round trips and of the two
//! before) and in δ (mvfst: 0.05, no competitive mode); here the paper is followed.
//!
//! For media the paper says nothing. The choices made:
//!
//! - `media_rate` is window / standing RTT, and includes RTP's header. That is a little more than the window lets through, whose round trips
//!   are longer than the standing one: it is less by what drains a backlog in half a second (as RFC 8698, section 4.4), at most by half.
//! - A packet's round trip is its one-way delay and the least that a report has taken, and counts at the time at which a report of this
//!   packet alone would have come: as if each were acknowledged at once. The return path's queue and the wait for a report are left out.
//! - The window in force is larger by what is sent in the time for which a report collects packets, and that time is part of a round trip
//!   where round trips are counted.
//! - The window does not grow while less than half of it is in flight: the source, not the path, limits the call.
//! - It begins with the start rate for one round trip.
//! - On round trips of 400 ms and more the window of a source that follows `media_rate` swings between a fifth and twice of what the path holds
//!   (`weir run row:o1 --controller copa`): v is 8 to 64 when the target rate is passed.
//! - A loss that a later report revokes has had its effect on δ; it is not undone.

mod config;
mod mode;
mod round_trips;
mod velocity;

#[cfg(test)]
mod tests;

use crate::controller::{Controller, Limits, Target};
use crate::cue::{Cue, PacketResult, QueueState, SentPacket, TransportFeedback};
use crate::parts::mean_size::MeanSize;
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
pub use config::Config;
use mode::Mode;
use round_trips::RoundTrips;
use velocity::Velocity;
use weir_units::{DataRate, DataSize, RemoteTimestamp, TimeDelta, Timestamp};

/// RTP header with one extension, in bytes (RFC 3550, RFC 8285).
const RTP_HEADER: DataSize = DataSize::from_bytes(20);
/// Size of a packet before the first is sent.
const USUAL_PACKET: DataSize = DataSize::from_bytes(1_200);
/// Least window in packets (genericCC: `_the_window = max(2.0, ...)`).
const MIN_WINDOW: f64 = 2.0;
/// Most packets in a window, so that no input makes it infinite: 10 Gbit/s for 10 s.
const MAX_WINDOW: f64 = 1e7;
/// Time in which media makes room for a backlog. Weir's choice.
const DRAIN: TimeDelta = TimeDelta::from_millis(500);
/// Pacing as a multiple of window / standing round-trip time (section 2.1).
const PACING: f64 = 2.0;

/// Copa, sender side.
#[derive(Clone, Debug)]
pub struct Copa {
    config: Config,
    limits: Limits,
    start: DataRate,
    size: MeanSize,
    round_trips: RoundTrips,
    mode: Mode,
    velocity: Velocity,
    /// The congestion window in packets; `None` before the first round trip.
    window: Option<f64>,
    in_slow_start: bool,
    /// Most bytes in flight since the last report.
    most_in_flight: DataSize,
    /// Bytes between encoder and pacer that are older than the last frame.
    backlog: DataSize,
    loss: RecentLoss,
    target: Target,
}

/// Packets and losses of at least two round trips (genericCC: `ReduceOnLoss`).
#[derive(Clone, Copy, Debug, Default)]
struct RecentLoss {
    since: Option<Timestamp>,
    packets: u32,
    lost: u32,
}

/// Packets from which on a share of losses counts (genericCC: `num_pkts > 20`).
const LOSS_PACKETS: u32 = 20;

impl RecentLoss {
    /// Takes a packet; the share lost once two round trips have passed.
    fn observe(&mut self, is_lost: bool, now: Timestamp, rtt: TimeDelta) -> Option<f64> {
        let since = *self.since.get_or_insert(now);
        self.packets = self.packets.saturating_add(1);
        self.lost = self.lost.saturating_add(u32::from(is_lost));
        if now - since <= rtt * 2 || self.packets <= LOSS_PACKETS {
            return None;
        }
        let share = f64::from(self.lost) / f64::from(self.packets);
        *self = Self { since: Some(now), packets: 0, lost: 0 };
        Some(share)
    }
}

impl Copa {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("copa")?;
        let rate = start.limits.clamp(start.rate);
        Ok(Self {
            config,
            limits: start.limits,
            start: rate,
            size: MeanSize::default(),
            round_trips: RoundTrips::new(&config),
            mode: Mode::new(&config),
            velocity: Velocity::default(),
            window: None,
            in_slow_start: true,
            most_in_flight: DataSize::ZERO,
            backlog: DataSize::ZERO,
            loss: RecentLoss::default(),
            target: Target { overhead: RTP_HEADER, ..Target::paced(rate, twice(rate)) },
        })
    }

    fn packet_size(&self) -> DataSize {
        let size = self.size.get();
        if size.is_zero() { USUAL_PACKET } else { size }
    }

    fn on_feedback(&mut self, f: &TransportFeedback<'_>) {
        let latest = f.packets.iter().rev().find_map(|p| Some((p, p.arrival?)));
        if let (Some(rtt), Some((latest, arrival))) = (f.rtt, latest) {
            let is_limited = self.is_limited_by_window();
            self.round_trips.on_report(rtt, one_way(latest, arrival), f.now);
            for p in f.packets {
                if let Some(arrival) = p.arrival {
                    self.on_acknowledged(p, arrival, is_limited);
                }
            }
        }
        for p in f.packets.iter().filter(|p| !p.was_lost) {
            self.on_fate(p.arrival.is_none(), f.now);
        }
        self.most_in_flight = f.bytes_in_flight;
        self.set_target();
    }

    /// Whether the window rather than the source limits what is sent.
    fn is_limited_by_window(&self) -> bool {
        let window = self.window.unwrap_or(0.0) * self.packet_size().as_bytes() as f64;
        2.0 * self.most_in_flight.as_bytes() as f64 >= window
    }

    /// A packet has arrived.
    fn on_acknowledged(&mut self, p: &PacketResult, arrival: RemoteTimestamp, is_limited: bool) {
        let rtt = self.round_trips.of(one_way(p, arrival));
        let now = p.departure + rtt;
        self.round_trips.on_packet(rtt, now);
        let (standing, queue) = (self.round_trips.standing(), self.round_trips.queue());
        let lap = self.round_trips.lap();
        self.mode.on_round_trip(&self.round_trips, now);
        let delta = self.mode.delta();
        let size = self.packet_size();
        let start = self.start;
        let window = self.window.get_or_insert_with(|| {
            (start.as_bps_f64() / 8.0 * rtt.as_secs_f64() / size.as_bytes() as f64).max(MIN_WINDOW)
        });
        // The queue in round trips: no queue is an infinite target.
        let is_below = *window * delta * queue.as_secs_f64() <= standing.as_secs_f64();
        if is_below && !is_limited {
            return;
        }
        if self.in_slow_start && is_below {
            *window += 1.0;
        } else {
            self.in_slow_start = false;
            let v = self.velocity.on_packet(is_below, *window, now, lap).min(delta * *window).max(1.0);
            let step = v / (delta * *window);
            *window += if is_below { step } else { -step };
        }
        *window = window.clamp(MIN_WINDOW, MAX_WINDOW);
    }

    /// A packet is reported received or lost for the first time.
    fn on_fate(&mut self, is_lost: bool, now: Timestamp) {
        let rtt = self.round_trips.lap();
        if is_lost {
            self.mode.on_loss(rtt, now);
        }
        if let Some(share) = self.loss.observe(is_lost, now, rtt)
            && share > self.config.loss_threshold
            && let Some(window) = &mut self.window
        {
            *window = (*window * self.config.loss_decrease).max(MIN_WINDOW);
        }
    }

    fn set_target(&mut self) {
        let Some(window) = self.window else {
            let rate = self.limits.clamp(self.start);
            self.target = Target { overhead: RTP_HEADER, ..Target::paced(rate, twice(rate)) };
            return;
        };
        let bytes = window * self.packet_size().as_bytes() as f64;
        let rate = bytes * 8.0 / self.round_trips.standing().as_secs_f64();
        let drain = self.backlog.as_bytes() as f64 * 8.0 / DRAIN.as_secs_f64();
        let media = self.limits.clamp(DataRate::from_bps_f64((rate - drain).max(rate / 2.0)));
        let collected = rate / 8.0 * self.round_trips.collection().as_secs_f64();
        self.target = Target {
            overhead: RTP_HEADER,
            window: Some(DataSize::from_bytes((bytes + collected) as u64)),
            ..Target::paced(media, twice(DataRate::from_bps_f64(rate).max(media)))
        };
    }
}

/// A packet's one-way delay, with the difference of the clocks.
fn one_way(p: &PacketResult, arrival: RemoteTimestamp) -> TimeDelta {
    TimeDelta::from_nanos(arrival.as_nanos().saturating_sub(p.departure.as_nanos()))
}

fn twice(rate: DataRate) -> DataRate {
    DataRate::from_bps_f64(PACING * rate.as_bps_f64())
}

impl Algorithm for Copa {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            feedback: Some(FeedbackPlan {
                format: FeedbackFormat::CongestionControl,
                // The paper's acknowledgements come with each packet.
                min_interval: TimeDelta::from_millis(5),
                max_interval: TimeDelta::from_millis(50),
                bandwidth_share: 0.05,
            }),
            params: Config::params(),
            ..Spec::new(
                "copa",
                "A window towards a rate of 1 / (0.5 queueing delay) packets; competes with flows that fill buffers",
                "Arun and Balakrishnan, NSDI 2018",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for Copa {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.size.on_packet(packet);
        self.most_in_flight = self.most_in_flight.max(packet.bytes_in_flight);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::TransportFeedback(f) = cue {
            self.on_feedback(f);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.set_target();
    }
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.backlog = queue.queued.saturating_sub(queue.added);
        self.set_target();
        true
    }
    fn target(&self) -> Target {
        self.target
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("window_packets", self.window.unwrap_or(f64::NAN));
        out("standing_rtt_ms", self.round_trips.standing().as_millis_f64());
        out("queue_ms", self.round_trips.queue().as_millis_f64());
        out("delta", self.mode.delta());
        out("velocity", self.velocity.get());
        out("is_competing", f64::from(u8::from(self.mode.is_competing())));
    }
}
