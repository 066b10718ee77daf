//! The CCID halves of this end (RFC 4340, section 10).

use super::{Config, Connection, EndReason, State};
use crate::ack_vector::Buffer;
use crate::ccid::{CcidReceiver, CcidSender, Receiver, Requirements, Sender, Setup};
use crate::feature::Location;
use crate::option::FeatureNumber;
use crate::packet::ResetCode;
use weir_cc::tunable::SetupError;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Option number in the Reset sent if the negotiated CCIDs cannot be constructed.
const CONFIRM_L: u8 = 33;

/// Maximum to which the Sequence Window widens by itself: an attacker would hit a larger one too easily
/// (section 7.5.5).
const MAX_WIDENED: u64 = 1 << 24;

/// The sending and receiving halves, once both ends agree.
#[derive(Debug, Default)]
pub(super) struct Halves {
    /// CCIDs of the data sent and received.
    pub(super) numbers: Option<(u8, u8)>,
    pub(super) sender: Option<Sender>,
    pub(super) receiver: Option<Receiver>,
    /// The Ack Vector of received packets.
    pub(super) vector: Buffer,
    /// Requirements of the other end on this end's acknowledgements.
    pub(super) acks: Requirements,
    /// The Ack Ratio last requested.
    asked_ratio: Option<u16>,
    /// Requirements of the other end on this end's data.
    pub(super) data: Requirements,
}

fn params(config: &Config, number: u8) -> Vec<(String, f64)> {
    config.ccids.params.iter().filter(|p| p.0 == number).map(|p| (p.1.clone(), p.2)).collect()
}

fn setup(config: &Config, number: u8, now: Timestamp, size: DataSize, rtt: Option<TimeDelta>, ecn: bool) -> Setup {
    Setup { now, max_packet_size: size, rtt, ecn, ack_ratio: 2, params: params(config, number) }
}

impl Halves {
    /// Whether everything that a connection may negotiate can be constructed.
    pub(super) fn check(config: &Config, now: Timestamp) -> Result<(), SetupError> {
        let spec =
            |n: u8| config.registry.get(n).ok_or_else(|| SetupError::UnknownController { name: format!("CCID {n}") });
        for &n in &config.ccids.send {
            (spec(n)?.sender)(&setup(config, n, now, config.initial_mtu, None, config.ecn))?;
        }
        for &n in &config.ccids.receive {
            (spec(n)?.receiver)(&setup(config, n, now, config.initial_mtu, None, config.ecn))?;
        }
        Ok(())
    }
}

impl Connection {
    /// Constructs the halves once both ends agree on them. Returns `false`, and the connection has ended, if they
    /// cannot be constructed.
    pub(super) fn open_half_connections(&mut self, now: Timestamp) -> bool {
        if self.halves.numbers.is_some() {
            return true;
        }
        let Some((local, remote)) = self.features.ccids() else { return true };
        let registry = self.config.registry.clone();
        let made = registry.get(local).zip(registry.get(remote)).and_then(|(s, r)| {
            let (size, rtt, ecn) = (self.max_packet_size(), self.timing.rtt, self.sends_ecn());
            let with = |number, ack_ratio| Setup { ack_ratio, ..setup(&self.config, number, now, size, rtt, ecn) };
            let sender = (s.sender)(&with(local, self.features.local(FeatureNumber::ACK_RATIO) as u16)).ok()?;
            let receiver = (r.receiver)(&with(remote, self.features.remote(FeatureNumber::ACK_RATIO) as u16)).ok()?;
            Some((sender, receiver, s.requirements, r.requirements))
        });
        let Some((sender, receiver, data, acks)) = made else {
            let data = [CONFIRM_L, FeatureNumber::CCID.0, local];
            self.reset_with(now, ResetCode::OPTION_ERROR, data, EndReason::NoCommonCcid);
            return false;
        };
        let (sender, receiver) = (Some(sender), Some(receiver));
        self.halves = Halves {
            numbers: Some((local, remote)),
            sender,
            receiver,
            acks,
            data,
            vector: Buffer::default(),
            asked_ratio: None,
        };
        if self.state == State::Open {
            self.timers.give_up = None;
        }
        self.apply_features();
        true
    }

    /// Applies changed features.
    pub(super) fn apply_features(&mut self) {
        while self.features.poll_changed().is_some() {}
        self.sequences.local_window = self.features.local(FeatureNumber::SEQUENCE_WINDOW);
        self.sequences.remote_window = self.features.remote(FeatureNumber::SEQUENCE_WINDOW);
        let ratio = self.features.remote(FeatureNumber::ACK_RATIO) as u16;
        if let Some(receiver) = &mut self.halves.receiver {
            receiver.on_ack_ratio(ratio);
        }
    }

    /// Requests a wider Sequence Window if more than a fifth of it is sent per round trip (section 7.5.2's guideline).
    /// It never narrows: that would gain little and cost a negotiation per pause.
    pub(super) fn widen_window(&mut self, now: Timestamp) {
        let (rtt, (from, since)) = (self.rtt_or_default(), self.sending.round);
        let elapsed = now.saturating_since(since);
        if elapsed < rtt || self.state != State::Open {
            return;
        }
        self.sending.round = (self.sequences.gss, now);
        if since == Timestamp::default() {
            return;
        }
        let sent = self.sequences.gss.since(from).max(0);
        let each = i128::from(sent) * i128::from(rtt.as_nanos()) / i128::from(elapsed.as_nanos().max(1));
        let wanted = u64::try_from(each * 5).unwrap_or(MAX_WIDENED).min(MAX_WIDENED);
        if wanted > self.features.local(FeatureNumber::SEQUENCE_WINDOW) {
            let window = wanted.next_power_of_two();
            self.features.change(Location::Local, FeatureNumber::SEQUENCE_WINDOW, &[window]);
        }
    }

    /// Requests the Ack Ratio that congestion control wants.
    pub(super) fn follow_ack_ratio(&mut self) {
        let wanted = self.halves.sender.as_ref().and_then(CcidSender::ack_ratio);
        if let Some(ratio) = wanted.filter(|r| self.halves.asked_ratio != Some(*r)) {
            self.halves.asked_ratio = Some(ratio);
            self.features.change(Location::Local, FeatureNumber::ACK_RATIO, &[u64::from(ratio)]);
        }
    }
}
