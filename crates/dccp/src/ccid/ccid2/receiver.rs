use super::Config;
use crate::ccid::{CcidReceiver, ReceivedPacket, Setup};
use crate::option::DccpOption;
use crate::packet::PacketWriter;
use weir_units::{Ecn, Seq48, TimeDelta, Timestamp};

/// Round-trip time if none is known (RFC 4340, section 3.4).
const DEFAULT_RTT: TimeDelta = TimeDelta::from_millis(200);
/// Ack Ratio if the sender signals that it does not use one (RFC 4340, section 11.3: 0); its initial value.
const DEFAULT_ACK_RATIO: u16 = 2;
/// An acknowledgement delayed by at least this reports its delay.
const TELL_ELAPSED: TimeDelta = TimeDelta::from_millis(1);

/// The half at the data's receiver. It acknowledges after every Ack Ratio data packets, at most 0.2 s after the first
/// of them, and at once after a gap, a late packet or a mark; for marks once per round trip (RFC 4340, section 11.3).
#[derive(Clone, Debug)]
pub struct Receiver {
    ack_ratio: u16,
    ack_delay: TimeDelta,
    newest: Option<(Seq48, Timestamp)>,
    /// Data packets since the last acknowledgement, and the arrival of the first of them.
    pub(super) waiting: u32,
    waiting_since: Timestamp,
    /// Out of order, or marked: an acknowledgement is due with the next data packet.
    is_urgent: bool,
    last_for_mark: Option<Timestamp>,
}

impl Receiver {
    pub(in crate::ccid) const fn new(setup: &Setup, config: &Config) -> Self {
        Self {
            ack_ratio: setup.ack_ratio,
            ack_delay: config.ack_delay,
            newest: None,
            waiting: 0,
            waiting_since: Timestamp::ZERO,
            is_urgent: false,
            last_for_mark: None,
        }
    }
    const fn ratio(&self) -> u32 {
        (if self.ack_ratio == 0 { DEFAULT_ACK_RATIO } else { self.ack_ratio }) as u32
    }
}

impl CcidReceiver for Receiver {
    fn on_packet(&mut self, packet: &ReceivedPacket<'_>) {
        let now = packet.now;
        // A gap in packets without data is acknowledged too, but only with a data packet: acknowledgements are not
        // acknowledged.
        match self.newest {
            Some((newest, _)) => {
                let ahead = packet.sequence.since(newest);
                self.is_urgent |= ahead != 1;
                if ahead > 0 {
                    self.newest = Some((packet.sequence, now));
                }
            }
            None => self.newest = Some((packet.sequence, now)),
        }
        if !packet.packet_type.is_data() && packet.data.is_zero() {
            return;
        }
        if packet.ecn == Ecn::Ce {
            let rtt = packet.rtt.unwrap_or(DEFAULT_RTT);
            if self.last_for_mark.is_none_or(|last| now.saturating_since(last) >= rtt) {
                self.last_for_mark = Some(now);
                self.is_urgent = true;
            }
        }
        if self.waiting == 0 {
            self.waiting_since = now;
        }
        self.waiting = self.waiting.saturating_add(1);
    }
    fn wants_ack(&self, now: Timestamp) -> bool {
        self.waiting >= self.ratio()
            || self.waiting > 0 && (self.is_urgent || now >= self.waiting_since + self.ack_delay)
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        (self.waiting > 0).then(|| self.waiting_since + if self.is_urgent { TimeDelta::ZERO } else { self.ack_delay })
    }
    fn write_options(&mut self, now: Timestamp, out: &mut PacketWriter<'_>) {
        let held = self.newest.map_or(TimeDelta::ZERO, |(_, at)| now.saturating_since(at));
        if held >= TELL_ELAPSED {
            let tens = u32::try_from(held.as_micros() / 10).unwrap_or(u32::MAX);
            out.option(&DccpOption::ElapsedTime(tens));
        }
    }
    fn on_ack_sent(&mut self, _now: Timestamp) {
        self.waiting = 0;
        self.is_urgent = false;
    }
    fn on_ack_ratio(&mut self, ratio: u16) {
        self.ack_ratio = ratio;
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("peer_ack_ratio", f64::from(self.ack_ratio));
    }
}
