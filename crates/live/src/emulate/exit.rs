//! The exit of the network: writes packets to the devices and measures their timing.

use super::{flow_of, header};
use crate::clock::Clock;
use crate::tun::Tun;
use weir_path::DropReason;
use weir_sim::{AgentId, LinkId, LogHistogram, Observer, Packet, Place};
use weir_units::{TimeDelta, Timestamp};

/// A packet written later than this counts as late.
pub(super) const LATE: TimeDelta = TimeDelta::from_millis(1);

/// Traffic of a link while packets waited for it, so that it was never idle.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Saturated {
    /// Bits of the packets that had waited.
    pub(super) bits: u64,
    /// Time between such a packet and the previous one, planned and measured.
    pub(super) planned: TimeDelta,
    pub(super) actual: TimeDelta,
    /// When the last packet was sent, planned and measured.
    last: Option<(Timestamp, Timestamp)>,
}

/// The observer that writes delivered packets, and passes all events to `observer`.
pub(super) struct Exit<O> {
    pub(super) observer: O,
    pub(super) tuns: [Tun; 2],
    pub(super) clock: Option<Clock>,
    pub(super) errors: LogHistogram,
    pub(super) late: u64,
    pub(super) written: [u64; 2],
    pub(super) write_errors: [u64; 2],
    pub(super) saturated: Vec<Saturated>,
    /// The link that the current packet has just left, and its wait there.
    left: Option<(LinkId, TimeDelta)>,
    marked: Vec<u8>,
}

impl<O> Exit<O> {
    pub(super) fn new(tuns: [Tun; 2], links: usize, observer: O) -> Self {
        Self {
            observer,
            tuns,
            clock: None,
            errors: LogHistogram::default(),
            late: 0,
            written: [0; 2],
            write_errors: [0; 2],
            saturated: vec![Saturated::default(); links],
            left: None,
            marked: Vec::new(),
        }
    }

    fn write(&mut self, from: AgentId, packet: &Packet) {
        let side = flow_of(from).1.other().index();
        let same = header::read(&packet.bytes).is_none_or(|h| h.ecn == packet.ecn);
        let bytes = if same {
            &packet.bytes
        } else {
            self.marked.clone_from(&packet.bytes);
            header::set_ecn(&mut self.marked, packet.ecn);
            &self.marked
        };
        match self.tuns[side].write(bytes) {
            Ok(()) => self.written[side] += 1,
            Err(_) => self.write_errors[side] += 1,
        }
    }

    fn measure(&mut self, planned: Timestamp, packet: &Packet) {
        let actual = self.clock.map_or(planned, |c| c.now());
        let error = actual.saturating_since(planned);
        self.errors.add(error);
        self.late += u64::from(error > LATE);
        let Some((link, waited)) = self.left.take() else { return };
        let Some(s) = self.saturated.get_mut(link.index()) else { return };
        if let Some((planned_before, actual_before)) = s.last
            && waited > TimeDelta::ZERO
        {
            s.bits += packet.size.as_bits();
            s.planned += planned - planned_before;
            s.actual += actual - actual_before;
        }
        s.last = Some((planned, actual));
    }
}

impl<O: Observer> Observer for Exit<O> {
    fn on_sent(&mut self, now: Timestamp, from: AgentId, packet: &Packet) {
        self.observer.on_sent(now, from, packet);
    }
    fn on_enqueued(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet) {
        self.observer.on_enqueued(now, link, from, packet);
    }
    fn on_forwarded(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet, queued_for: TimeDelta) {
        self.left = Some((link, queued_for));
        self.observer.on_forwarded(now, link, from, packet, queued_for);
    }
    fn on_marked(&mut self, now: Timestamp, link: LinkId, from: AgentId, packet: &Packet) {
        self.observer.on_marked(now, link, from, packet);
    }
    fn on_dropped(&mut self, now: Timestamp, place: Place, from: AgentId, packet: &Packet) {
        let has_taken_capacity = match place {
            Place::Link(link, DropReason::RandomLoss) => Some(link),
            Place::Link(_, DropReason::Queue | DropReason::Aqm | DropReason::Policer) | Place::Agent(_) => None,
        };
        if let Some(s) = has_taken_capacity.and_then(|link| self.saturated.get_mut(link.index())) {
            // Its departure was not observed, so the interval around it is unknown.
            s.last = None;
        }
        self.observer.on_dropped(now, place, from, packet);
    }
    fn on_delivered(&mut self, now: Timestamp, to: AgentId, from: AgentId, packet: &Packet) {
        self.write(from, packet);
        self.measure(now, packet);
        self.observer.on_delivered(now, to, from, packet);
    }
}
