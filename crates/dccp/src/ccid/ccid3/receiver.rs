//! The data receiver (RFC 5348, section 6; RFC 4342, sections 8 and 10).

use super::config::Config;
use super::history::History;
use super::intervals::Intervals;
use super::options::{self, LOSS_EVENT_RATE, RECEIVE_RATE};
use crate::ccid::{CcidReceiver, ReceivedPacket, Setup};
use crate::packet::PacketWriter;
use weir_cc::tcp::TcpFlow;
use weir_cc::tunable::SetupError;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Round-trip time if none is known (RFC 4340, section 3.4).
const DEFAULT_RTT: TimeDelta = TimeDelta::from_millis(200);
/// Weight of a sample in the round-trip time by window counters.
const RTT_WEIGHT: f64 = 0.1;
/// Weight of a packet in the mean size.
const SIZE_WEIGHT: f64 = 1.0 / 32.0;
/// Quarters of a round trip between feedback packets (RFC 4342, section 10.3).
const FEEDBACK: u64 = 4;
/// Round trips after which the timer sends feedback.
const FEEDBACK_TIMER: i64 = 2;
/// Minimum measuring time.
const LEAST: TimeDelta = TimeDelta::from_micros(10);
/// Feedback packets remembered.
const MARKS: usize = 4;

/// The round-trip time by the arrival of window counters (RFC 4342, section 8.1).
#[derive(Clone, Debug, Default)]
struct CounterRtt {
    /// T(I) of the newest counters, by their last three bits.
    first: [Option<(u64, Timestamp)>; 8],
    newest: Option<u64>,
    estimate: Option<TimeDelta>,
}

impl CounterRtt {
    fn on_counter(&mut self, counter: u64, now: Timestamp) {
        if self.newest.is_some_and(|n| counter <= n) {
            return;
        }
        self.newest = Some(counter);
        self.first[counter as usize % 8] = Some((counter, now));
        for d in [4, 3, 2] {
            let Some(earlier) = counter.checked_sub(d) else { continue };
            let Some((_, then)) = self.first[earlier as usize % 8].filter(|f| f.0 == earlier) else { continue };
            let sample = (now.saturating_since(then) * 4 / d as i64).max(LEAST);
            // A distance of 4 is the most exact; the others are used only until there is one.
            match self.estimate {
                None => self.estimate = Some(sample),
                Some(e) if d == 4 => self.estimate = Some(e.mul_f64(1.0 - RTT_WEIGHT) + sample.mul_f64(RTT_WEIGHT)),
                Some(_) => {}
            }
            return;
        }
    }
}

/// Feedback that was sent.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Timestamp,
    /// The greatest window counter, and the bytes of data, received up to then.
    counter: u64,
    bytes: u64,
}

/// The receiver's half of CCID 3 and its relatives.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    /// The nominal segment of CCID 4.
    nominal: Option<DataSize>,
    history: History,
    intervals: Intervals,
    counter_rtt: CounterRtt,
    connection_rtt: Option<TimeDelta>,
    /// Bytes of data that have arrived.
    bytes: u64,
    /// Mean data packet, in bytes; zero before the first.
    segment: f64,
    /// Send times of feedback, newest first.
    marks: [Option<Mark>; MARKS],
    /// The last X_recv reported, and the greatest.
    receive_rate: DataRate,
    max_receive_rate: DataRate,
    /// Whether data was received since the last feedback, and whether the next is due.
    has_data: bool,
    is_due: bool,
}

impl Receiver {
    /// A receiver of CCID 3. Errors: see [`Config::set_all`].
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        Ok(Self::with(Config::selected("CCID 3", &setup.params)?, None))
    }

    /// A receiver for small packets, which the equation takes as a nominal segment, or for any size.
    pub(in crate::ccid) fn with(config: Config, nominal: Option<DataSize>) -> Self {
        Self {
            config,
            nominal,
            history: History::new(),
            intervals: Intervals::new(nominal.is_some(), config.discounting),
            counter_rtt: CounterRtt::default(),
            connection_rtt: None,
            bytes: 0,
            segment: 0.0,
            marks: [None; MARKS],
            receive_rate: DataRate::ZERO,
            max_receive_rate: DataRate::ZERO,
            has_data: false,
            is_due: false,
        }
    }

    fn rtt(&self) -> TimeDelta {
        self.counter_rtt.estimate.or(self.connection_rtt).unwrap_or(DEFAULT_RTT).max(LEAST)
    }

    /// X_recv: measured since the last feedback at least one round trip ago, by window counters or by the estimate
    /// (RFC 5348, section 6.2; RFC 4342, section 8.3); 0 before the second.
    fn measure(&self, now: Timestamp) -> DataRate {
        let (rtt, counter) = (self.rtt(), self.history.place().counter);
        let over = |m: &Mark| {
            let time = now.saturating_since(m.at).max(LEAST);
            (time, counter - m.counter >= FEEDBACK || time >= rtt)
        };
        let marks = || self.marks.iter().flatten();
        let Some(from) = marks().find(|m| over(m).1).or(marks().last()) else { return DataRate::ZERO };
        let time = if over(from).1 { over(from).0 } else { rtt };
        DataRate::from_size_over(DataSize::from_bytes(self.bytes - from.bytes), time).unwrap_or(DataRate::ZERO)
    }

    /// X_recv as Linux 3.x had it: measured since the last feedback, however short that is; a loss before the next
    /// feedback is due repeats the last value.
    fn measure_since_feedback(&self, now: Timestamp) -> DataRate {
        let Some(last) = self.marks[0] else { return DataRate::ZERO };
        let is_regular =
            self.history.place().counter - last.counter >= FEEDBACK || self.due_at().is_some_and(|t| t <= now);
        if !is_regular && self.receive_rate > DataRate::ZERO {
            return self.receive_rate;
        }
        let time = now.saturating_since(last.at).max(LEAST);
        DataRate::from_size_over(DataSize::from_bytes(self.bytes - last.bytes), time).unwrap_or(DataRate::ZERO)
    }

    fn on_data(&mut self, packet: &ReceivedPacket<'_>) {
        let size = packet.data.as_bytes();
        self.bytes = self.bytes.saturating_add(size);
        self.segment =
            if self.segment > 0.0 { self.segment + SIZE_WEIGHT * (size as f64 - self.segment) } else { size as f64 };
        let counter = self.history.place().counter;
        self.counter_rtt.on_counter(counter, packet.now);
        self.has_data = true;
        // last_counter is that of the last feedback.
        self.is_due |= self.marks[0].is_none_or(|last| counter >= last.counter + FEEDBACK);
    }

    fn due_at(&self) -> Option<Timestamp> {
        let last = self.marks[0].filter(|_| self.has_data)?;
        Some(last.at + self.rtt() * FEEDBACK_TIMER)
    }
}

impl CcidReceiver for Receiver {
    fn on_packet(&mut self, packet: &ReceivedPacket<'_>) {
        self.connection_rtt = packet.rtt.or(self.connection_rtt);
        if self.history.highest().is_none() {
            self.intervals.start(packet.sequence);
        }
        let measured = self.measure(packet.now).max(self.max_receive_rate);
        let segment = self.nominal.unwrap_or(DataSize::from_bytes((self.segment + 0.5) as u64));
        let tcp = TcpFlow::new(segment, self.rtt());
        let Self { history, intervals, is_due, .. } = self;
        let is_new = history.on_packet(packet, |loss| {
            *is_due |= intervals.on_loss(loss, || tcp.first_loss_interval(measured));
        });
        if is_new && packet.packet_type.is_data() {
            self.on_data(packet);
        }
    }

    fn wants_ack(&self, now: Timestamp) -> bool {
        self.is_due || self.due_at().is_some_and(|t| t <= now)
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.due_at().filter(|_| !self.is_due)
    }

    /// Writes feedback if it is due; acknowledgements before that carry none.
    fn write_options(&mut self, now: Timestamp, out: &mut PacketWriter<'_>) {
        if !self.wants_ack(now) {
            return;
        }
        self.receive_rate = if self.config.linux { self.measure_since_feedback(now) } else { self.measure(now) };
        self.max_receive_rate = self.max_receive_rate.max(self.receive_rate);
        let rate = u32::try_from(self.receive_rate.as_bps() / 8).unwrap_or(u32::MAX);
        options::write_u32(out, RECEIVE_RATE, rate);
        let (skip, intervals) = self.intervals.report(&self.history);
        options::write_intervals(out, skip, intervals.clone());
        if self.nominal.is_some() {
            options::write_dropped(out, intervals);
        }
        if self.config.loss_event_rate {
            let p = self.intervals.loss_event_rate(&self.history);
            // Values that the option cannot express, such as infinity for p = 0, are sent as its maximum.
            options::write_u32(out, LOSS_EVENT_RATE, libm::ceil(1.0 / p - 1e-9) as u32);
        }
        self.marks.copy_within(..MARKS - 1, 1);
        self.marks[0] = Some(Mark { at: now, counter: self.history.place().counter, bytes: self.bytes });
        (self.has_data, self.is_due) = (false, false);
    }

    fn on_ack_sent(&mut self, _: Timestamp) {}

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("x_recv_bps", self.receive_rate.as_bps_f64());
        out("loss_event_rate", self.intervals.loss_event_rate(&self.history));
        out("rtt_ms", self.rtt().as_millis_f64());
    }
}
