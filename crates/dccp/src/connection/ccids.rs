//! The halves of CCIDs at this end (RFC 4340, section 10).

use super::{Config, Connection, EndReason};
use crate::ack_vector::AckState;
use crate::ccid::{CcidReceiver, Receiver, Requirements, Sender, Setup};
use crate::option::FeatureNumber;
use crate::packet::{PacketWriter, ResetCode};
use weir_cc::tunable::SetupError;
use weir_units::{DataSize, Seq48, TimeDelta, Timestamp};

/// The Ack Vector of what comes.
#[derive(Clone, Debug, Default)]
pub(super) struct Vector;

impl Vector {
    pub(super) fn on_packet(&mut self, _sequence: Seq48, _state: AckState) {}
    pub(super) fn on_ack_of_ack(&mut self, _ack: Seq48) {}
    pub(super) fn write(&mut self, _acknowledged: Seq48, _sequence: Seq48, _out: &mut PacketWriter<'_>) {}
}

/// What this end sends with and receives with, once both ends agree.
#[derive(Debug, Default)]
pub(super) struct Halves {
    /// CCIDs of what is sent and received.
    pub(super) numbers: Option<(u8, u8)>,
    pub(super) sender: Option<Sender>,
    pub(super) receiver: Option<Receiver>,
    pub(super) vector: Vector,
    /// What the other end needs of the acknowledgements of this end.
    pub(super) acks: Requirements,
    /// What the other end needs of the data of this end.
    pub(super) data: Requirements,
}

fn params(config: &Config, number: u8) -> Vec<(String, f64)> {
    config.ccids.params.iter().filter(|p| p.0 == number).map(|p| (p.1.clone(), p.2)).collect()
}

fn setup(config: &Config, number: u8, now: Timestamp, size: DataSize, rtt: Option<TimeDelta>, ecn: bool) -> Setup {
    Setup { now, max_packet_size: size, rtt, ecn, ack_ratio: 2, params: params(config, number) }
}

impl Halves {
    /// Whether all that a connection may negotiate can be made.
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
    /// Makes the halves as soon as both ends agree on them. `false`, and the connection has ended, where this end does not have what
    /// they agree on.
    pub(super) fn open_half_connections(&mut self, now: Timestamp) -> bool {
        if self.halves.numbers.is_some() || !self.features.ccids_are_agreed() {
            return true;
        }
        let local = self.features.local(FeatureNumber::CCID) as u8;
        let remote = self.features.remote(FeatureNumber::CCID) as u8;
        let (size, rtt) = (self.max_packet_size(), self.timing.rtt);
        let registry = self.config.registry.clone();
        let wanted = self.config.ccids.send.contains(&local) && self.config.ccids.receive.contains(&remote);
        let made = registry.get(local).zip(registry.get(remote)).filter(|_| wanted).and_then(|(s, r)| {
            let ecn = self.sends_ecn();
            let local_setup = Setup {
                ack_ratio: self.features.local(FeatureNumber::ACK_RATIO) as u16,
                ..setup(&self.config, local, now, size, rtt, ecn)
            };
            let remote_setup = Setup {
                ack_ratio: self.features.remote(FeatureNumber::ACK_RATIO) as u16,
                ..setup(&self.config, remote, now, size, rtt, ecn)
            };
            Some(((s.sender)(&local_setup).ok()?, (r.receiver)(&remote_setup).ok()?, s.requirements, r.requirements))
        });
        let Some((sender, receiver, data, acks)) = made else {
            self.reset_with(now, ResetCode::OPTION_ERROR, [33, FeatureNumber::CCID.0, local], EndReason::NoCommonCcid);
            return false;
        };
        self.halves = Halves {
            numbers: Some((local, remote)),
            sender: Some(sender),
            receiver: Some(receiver),
            acks,
            data,
            vector: Vector,
        };
        self.features.require(now, data, acks);
        self.apply_features();
        true
    }

    /// Tells the CCIDs of features that have changed.
    pub(super) fn apply_features(&mut self) {
        self.sequences.local_window = self.features.local(FeatureNumber::SEQUENCE_WINDOW);
        self.sequences.remote_window = self.features.remote(FeatureNumber::SEQUENCE_WINDOW);
        let ratio = self.features.remote(FeatureNumber::ACK_RATIO) as u16;
        if let Some(receiver) = &mut self.halves.receiver {
            receiver.on_ack_ratio(ratio);
        }
    }
}
