//! Feature negotiation (RFC 4340, section 6): values that both ends agree on, by Change and Confirm options.
//!
//! Features are one flat table of ten, at both ends (`dccp::feature`): a value requested by the other end applies at
//! once and its Confirm is sent with the next packet. Init Cookies need no state at the server: the cookie contains
//! the Request's Changes under an HMAC, and the connection is created by replaying that Request.

mod read;
mod table;
mod wishes;
mod write;

pub use table::Location;

use crate::ccid::{Registry, Requirements};
use crate::config::Config;
use crate::option::FeatureNumber;
use crate::packet::{PacketType, ResetCode};
use std::sync::Arc;
use table::{Rule, SLOTS, Slot, Values};
use weir_units::{Seq48, TimeDelta, Timestamp};

/// Round-trip time until it is known (RFC 4340, section 3.4).
const DEFAULT_RTT: TimeDelta = TimeDelta::from_millis(200);
/// Maximum interval of repeated Changes (RFC 4340, section 6.6.3).
const MAX_BACKOFF: TimeDelta = TimeDelta::from_secs(64);
/// Maximum pending empty Confirms of unknown features. Further ones are omitted: the other end repeats its request.
const MAX_UNKNOWN: usize = 8;

/// Why the connection is to be reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResetCause {
    /// Reset Code.
    pub code: ResetCode,
    /// Data 1 to 3.
    pub data: [u8; 3],
}

/// A feature whose value has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Changed {
    /// The feature.
    pub number: FeatureNumber,
    /// Its end.
    pub location: Location,
}

/// State of a feature's negotiation (RFC 4340, section 6.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    /// STABLE: both ends agree as far as this one knows.
    #[default]
    Stable,
    /// Still STABLE; a Change is to be sent.
    Wanting,
    /// CHANGING: a Change was sent and not answered.
    Changing,
    /// UNSTABLE: this end's wish differs from its last Change; the new one is to be sent.
    Unstable,
}

/// A reply to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// The value and, if values are negotiated, this end's list.
    Value,
    /// The request was invalid.
    Empty,
}

/// A feature of one end.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    value: u64,
    /// The values that this end wants.
    values: Values,
    phase: Phase,
    answer: Option<Answer>,
    /// Whether there has been one.
    answered: bool,
    /// Whether a failed Change ends the connection.
    mandatory: bool,
    /// Whether the application has set a wish, which takes precedence over a CCID's need.
    explicit: bool,
    /// Whether Changes with other contents were sent before, to which a late Confirm may refer.
    repeated: bool,
    /// Whether any Change has been sent.
    asked: bool,
    /// Whether the other end has refused; a CCID's need is not requested again.
    refused: bool,
}

/// The packet whose options are being processed.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    packet_type: PacketType,
    sequence: Seq48,
    acknowledgement: Option<Seq48>,
    in_order: bool,
}

/// All features of both ends, as seen by one end.
///
/// Call [`Self::begin_packet`] for each valid packet received, then [`Self::on_option`] for its options in order;
/// [`Self::write_options`] for each packet sent. A value requested by the other end applies at once, and its Confirm
/// waits for the next packet: while [`Self::pending`] says so, send a DCCP-DataAck rather than a DCCP-Data.
#[derive(Clone, Debug)]
pub struct Negotiation {
    is_server: bool,
    registry: Arc<Registry>,
    entries: [Entry; SLOTS],
    arrived: Option<Arrived>,
    /// FGSR: the newest packet with Change or Confirm options (RFC 4340, section 6.6.4).
    newest_received: Option<Seq48>,
    /// FGSS: the newest packet sent with a new Change.
    newest_sent: Option<Seq48>,
    /// Unknown features that an empty Confirm is due for.
    unknown: [Option<(Location, FeatureNumber)>; MAX_UNKNOWN],
    unknown_features: u64,
    /// A bit for each slot whose change [`Self::poll_changed`] has not returned yet.
    changed: u32,
    /// A bit for each slot that its half-connection's CCID requires to be 1.
    needed: u32,
    /// Whether something may be due: keeps packets with nothing to negotiate cheap.
    active: bool,
    rtt: TimeDelta,
    /// When Changes were last sent, and the interval until they are repeated.
    changes_sent: Option<(Timestamp, TimeDelta)>,
    /// When such options were last sent.
    last_written: Option<Timestamp>,
}

impl Negotiation {
    /// All features at their initial values, with the differing wishes of `config` to be sent. A client always states
    /// its CCIDs.
    pub fn new(config: &Config, is_server: bool) -> Self {
        let mut entries = [Entry::default(); SLOTS];
        for slot in Slot::all() {
            let feature = slot.feature();
            let (values, wants) = wishes::wishes(slot, config);
            let entry = &mut entries[slot.index()];
            (entry.value, entry.values) = (feature.initial, values);
            entry.mandatory = slot.number() == FeatureNumber::CCID && !values.contains(feature.initial);
            let says_anyway = slot.number() == FeatureNumber::CCID && !is_server;
            if wants || says_anyway {
                entry.phase = Phase::Wanting;
            }
        }
        let mut all = Self {
            is_server,
            registry: Arc::clone(&config.registry),
            entries,
            arrived: None,
            newest_received: None,
            newest_sent: None,
            unknown: [None; MAX_UNKNOWN],
            unknown_features: 0,
            changed: 0,
            needed: 0,
            active: true,
            rtt: DEFAULT_RTT,
            changes_sent: None,
            last_written: None,
        };
        all.find_needs();
        all
    }

    /// The value of a feature of this end; 0 if it is unknown.
    pub fn local(&self, number: FeatureNumber) -> u64 {
        self.value(Location::Local, number)
    }
    /// The value of a feature of the other end.
    pub fn remote(&self, number: FeatureNumber) -> u64 {
        self.value(Location::Remote, number)
    }
    fn value(&self, location: Location, number: FeatureNumber) -> u64 {
        Slot::new(location, number).map_or(0, |s| self.entries[s.index()].value)
    }
    /// The CCIDs for the data that this end sends and receives, once both ends have stated theirs; `None` before that,
    /// and if this end does not have the agreed ones.
    pub fn ccids(&self) -> Option<(u8, u8)> {
        self.arrived?;
        let settled = |location| {
            let entry = &self.entries[Slot::new(location, FeatureNumber::CCID)?.index()];
            let usable = entry.values.contains(entry.value) && (entry.phase == Phase::Stable || self.is_server);
            u8::try_from(entry.value).ok().filter(|_| usable)
        };
        Some((settled(Location::Local)?, settled(Location::Remote)?))
    }
    /// Whether no negotiation is in progress.
    pub fn is_stable(&self) -> bool {
        Slot::all().all(|s| self.entries[s.index()].phase == Phase::Stable && !self.ccid_wants(s))
            && !self.has_answers()
    }
    /// Features requested by the other end that this one does not know.
    pub fn unknown_features(&self) -> u64 {
        self.unknown_features
    }
    /// The next feature that has changed since the last call; a value that changed back and forth is returned once.
    pub fn poll_changed(&mut self) -> Option<Changed> {
        let slot = Slot::all().find(|s| self.changed & 1 << s.index() != 0)?;
        self.changed &= !(1 << slot.index());
        Some(Changed { number: slot.number(), location: slot.location() })
    }
    /// Sets the round-trip time, for the intervals between repeated Changes.
    pub fn set_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = rtt.clamp(TimeDelta::from_millis(1), MAX_BACKOFF);
    }

    /// Requests another value: `values` are those that this end accepts, in order of preference; a single one for
    /// Sequence Window and Ack Ratio, which only the feature's own end may change. Returns `false` without effect if
    /// the feature is unknown or a value is invalid.
    pub fn change(&mut self, location: Location, number: FeatureNumber, values: &[u64]) -> bool {
        let Some(slot) = Slot::new(location, number) else { return false };
        let list = match (slot.feature().rule, values) {
            (Rule::NonNegotiable { bytes, least, most }, &[value])
                if location == Location::Local && (least..=most).contains(&value) =>
            {
                Values::one(value, bytes)
            }
            (Rule::ServerPriority, [_, ..])
                if values.len() <= Values::MAX && values.iter().all(|&v| v <= u64::from(u8::MAX)) =>
            {
                Values::list(values.iter().copied())
            }
            _ => return false,
        };
        let entry = &mut self.entries[slot.index()];
        let same = entry.values == list;
        // The current value need not be requested, unless a Confirm of another list may still be in flight.
        let there = slot.feature().rule.value(list.bytes()) == Some(entry.value);
        let keeps = if entry.phase == Phase::Stable { same || !entry.answered } else { !entry.answered };
        (entry.values, entry.explicit, entry.refused) = (list, true, false);
        if !same {
            // It was computed from the old list; the other end's Change is repeated, or this end's answers it.
            entry.answer = None;
        }
        entry.phase = match entry.phase {
            Phase::Stable | Phase::Wanting if there && keeps => Phase::Stable,
            Phase::Stable | Phase::Wanting => Phase::Wanting,
            Phase::Changing if same => Phase::Changing,
            Phase::Changing | Phase::Unstable => Phase::Unstable,
        };
        self.active = true;
        self.find_needs();
        true
    }

    fn set(&mut self, slot: Slot, value: u64) {
        let entry = &mut self.entries[slot.index()];
        if entry.value == value {
            return;
        }
        entry.value = value;
        self.changed |= 1 << slot.index();
        // Another CCID has its own features, which start from their initial values (RFC 4340, section 10.3): those at
        // the data's receiver.
        if slot.number() == FeatureNumber::CCID {
            let other = if slot.location() == Location::Local { Location::Remote } else { Location::Local };
            if let Some(own) = Slot::new(other, FeatureNumber::SEND_LOSS_EVENT_RATE) {
                let entry = &mut self.entries[own.index()];
                (entry.phase, entry.answer) = (Phase::Stable, None);
                self.set(own, own.feature().initial);
            }
        }
    }

    /// The CCID of the half-connection whose data's receiver is at `location`, as far as it is known or wished.
    fn ccid_towards(&self, location: Location) -> Option<u8> {
        let sender = if location == Location::Local { Location::Remote } else { Location::Local };
        let entry = &self.entries[Slot::new(sender, FeatureNumber::CCID)?.index()];
        let hoped = matches!(entry.phase, Phase::Wanting | Phase::Changing | Phase::Unstable) && !self.is_server;
        if hoped { entry.values.bytes().first().copied() } else { u8::try_from(entry.value).ok() }
    }
    fn requirements_towards(&self, location: Location) -> Requirements {
        let spec = self.ccid_towards(location).and_then(|n| self.registry.get(n));
        spec.map_or(Requirements::default(), |s| s.requirements)
    }
    /// Features of a CCID are known if the half-connection has one that defines them: TFRC's family, and experiments.
    fn is_known(&self, slot: Slot) -> bool {
        slot.number() != FeatureNumber::SEND_LOSS_EVENT_RATE
            || matches!(self.ccid_towards(slot.location()), Some(3 | 4 | 248..=254))
    }
    /// Determines which features the CCIDs require to be 1. Ack Vectors are sent by the data's receiver, NDP Counts by
    /// their sender.
    fn find_needs(&mut self) {
        self.needed = 0;
        for (receiver, sender) in [(Location::Local, Location::Remote), (Location::Remote, Location::Local)] {
            let needs = self.requirements_towards(receiver);
            let ack_vector = (needs.ack_vector, receiver, FeatureNumber::SEND_ACK_VECTOR);
            for (needed, location, number) in [ack_vector, (needs.ndp_count, sender, FeatureNumber::SEND_NDP_COUNT)] {
                if let Some(slot) = Slot::new(location, number).filter(|_| needed) {
                    self.needed |= 1 << slot.index();
                }
            }
        }
    }
    fn is_needed(&self, slot: Slot) -> bool {
        self.needed & 1 << slot.index() != 0
    }
    fn ccid_wants(&self, slot: Slot) -> bool {
        let entry = &self.entries[slot.index()];
        entry.phase == Phase::Stable && entry.value == 0 && !(entry.explicit || entry.refused) && self.is_needed(slot)
    }
    /// The values of a feature that this end wants now.
    fn wanted(&self, slot: Slot) -> Values {
        let entry = &self.entries[slot.index()];
        if entry.explicit || matches!(entry.phase, Phase::Changing | Phase::Unstable) {
            return entry.values;
        }
        match slot.number() {
            FeatureNumber::SEND_ACK_VECTOR | FeatureNumber::SEND_NDP_COUNT if self.is_needed(slot) => Values::list([1]),
            FeatureNumber::SEND_ACK_VECTOR | FeatureNumber::SEND_NDP_COUNT => Values::list([0, 1]),
            _ => entry.values,
        }
    }

    fn has_answers(&self) -> bool {
        self.unknown.iter().any(Option::is_some) || self.entries.iter().any(|e| e.answer.is_some())
    }

    /// When a packet with only such options is due, if none is sent before; a past time means at once.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if !self.active {
            return None;
        }
        let wants =
            |s: Slot| matches!(self.entries[s.index()].phase, Phase::Wanting | Phase::Unstable) || self.ccid_wants(s);
        let again = self.changes_sent.filter(|_| self.entries.iter().any(|e| e.phase == Phase::Changing));
        let again = again.map(|(sent, wait)| sent + wait);
        if !self.has_answers() && !Slot::all().any(wants) {
            return again;
        }
        // At most one such packet per round trip (RFC 4340, section 6.6.1).
        let soon = self.last_written.map_or(Timestamp::default(), |last| last + self.rtt);
        Some(again.map_or(soon, |a| a.min(soon)))
    }
    /// Whether that deadline has passed.
    pub fn pending(&self, now: Timestamp) -> bool {
        self.poll_timeout().is_some_and(|due| due <= now)
    }
}

#[cfg(test)]
mod tests;
