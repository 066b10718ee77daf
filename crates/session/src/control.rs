//! Configures the ends of a session for a controller from a registry.
//!
//! A controller's entry ([`Spec`](weir_cc::Spec)) states the feedback, reports and header extensions that it requires.
//! [`Control`] applies them to the configuration of one end, and [`CallPlan`] to both ends of a one-way call.

use crate::config::{EndpointConfig, ReceiveConfig, SendConfig};
use crate::endpoint::Endpoint;
use weir_cc::tunable::SetupError;
use weir_cc::{FeedbackFormat, FeedbackPlan, Limits, Pair, Receiver, Registry, ReportPlan, Sender, Setup};
use weir_media::Source;
use weir_units::{Ecn, Timestamp};

/// A controller's two halves and its requirements on the session. Fields may be changed before use.
pub struct Control {
    /// The halves.
    pub controller: Pair<Sender, Receiver>,
    /// Bounds on the media rate that it was made with.
    pub limits: Limits,
    /// Per-packet feedback sent by the receiver.
    pub feedback: Option<FeedbackPlan>,
    /// Regular reports sent by the receiver; `None` leaves them to RFC 3550's timer.
    pub reports: Option<ReportPlan>,
    /// ECN codepoint of its packets in calls with ECN.
    pub ecn: Ecn,
}

impl Control {
    /// The controller of this name, with its entry's requirements.
    ///
    /// # Errors
    /// An unknown controller, or parameters that it rejects.
    pub fn new(registry: &Registry, name: &str, setup: &Setup) -> Result<Self, SetupError> {
        let controller = registry.make(name, setup)?;
        let spec = registry.get(name).ok_or_else(|| SetupError::UnknownController { name: name.into() })?;
        let (feedback, reports, ecn) = (spec.feedback, spec.reports, spec.ecn);
        Ok(Self { controller, limits: setup.limits, feedback, reports, ecn })
    }

    /// Enables the header extensions that the sending end requires.
    pub fn configure(&self, end: &mut EndpointConfig) {
        end.transport_sequence |= self.feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide);
        end.abs_send_time |= self.controller.receiver.is_some();
    }

    /// The sending and the receiving direction, for one end or two, with all options off.
    pub fn into_directions(self, source: Source) -> (SendConfig, ReceiveConfig) {
        let send = SendConfig {
            per_packet_feedback: self.feedback.is_some(),
            reports: self.reports,
            ..SendConfig::new(source, self.controller.sender, self.limits)
        };
        let controller = self.controller.receiver;
        let receive =
            ReceiveConfig { feedback: self.feedback, reports: self.reports, controller, ..Default::default() };
        (send, receive)
    }

    /// The receiving direction of an end that sends no media.
    pub fn into_receive(self) -> ReceiveConfig {
        let Self { controller, feedback, reports, .. } = self;
        ReceiveConfig { feedback, reports, controller: controller.receiver, ..Default::default() }
    }
}

/// Both ends of a one-way call. Fields may be changed before the ends are made.
pub struct CallPlan {
    /// The end that sends media.
    pub sender: EndpointConfig,
    /// The end that receives it.
    pub receiver: EndpointConfig,
    /// What the sender sends, under which controller.
    pub send: SendConfig,
    /// How the receiver receives it.
    pub receive: ReceiveConfig,
}

impl CallPlan {
    /// A call of `source` under `control`. `sender` is the sending end's configuration, to which the controller's
    /// requirements are added; the receiving end mirrors it ([`EndpointConfig::mirrored`]).
    pub fn new(control: Control, source: Source, sender: EndpointConfig, receiver: EndName) -> Self {
        let mut sender = sender;
        control.configure(&mut sender);
        let receiver = sender.mirrored(receiver);
        let (send, receive) = control.into_directions(source);
        Self { sender, receiver, send, receive }
    }

    /// Makes the sending and the receiving end.
    pub fn into_ends(self, now: Timestamp) -> (Endpoint, Endpoint) {
        let sender = Endpoint::new(self.sender, Some(self.send), None, now);
        (sender, Endpoint::new(self.receiver, None, Some(self.receive), now))
    }
}

/// An end's own name and seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndName {
    /// Canonical name in SDES.
    pub cname: String,
    /// Seed of its random values.
    pub seed: u64,
}

impl EndpointConfig {
    /// The other end of a call with the same settings: its sources are swapped, and no station reports to it.
    #[must_use]
    pub fn mirrored(&self, name: EndName) -> Self {
        Self {
            ssrc: self.remote_ssrc,
            remote_ssrc: self.ssrc,
            repair_ssrc: self.remote_repair_ssrc,
            remote_repair_ssrc: self.repair_ssrc,
            retransmission_ssrc: self.remote_retransmission_ssrc,
            remote_retransmission_ssrc: self.retransmission_ssrc,
            station_ssrc: None,
            cname: name.cname,
            seed: name.seed,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_media::PerfectCodec;
    use weir_units::{DataRate, DataSize};

    fn setup() -> Setup {
        let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(2) };
        Setup { limits, start_rate: DataRate::from_kbps(300), now: Timestamp::ZERO, seed: 1, params: vec![] }
    }

    fn plan(registry: &Registry, name: &str) -> CallPlan {
        let control = Control::new(registry, name, &setup()).expect("built in");
        let source = PerfectCodec::packets(DataSize::from_bytes(1_000), Timestamp::ZERO).into();
        let sender = EndpointConfig { ssrc: 7, remote_ssrc: 8, repair_ssrc: Some(9), ..EndpointConfig::default() };
        CallPlan::new(control, source, sender, EndName { cname: "b".into(), seed: 5 })
    }

    #[test]
    fn both_ends_have_what_every_controller_asks_for() {
        let registry = Registry::builtin();
        for spec in registry.specs() {
            let p = plan(&registry, &spec.name);
            let transport_wide = spec.feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide);
            assert_eq!(p.sender.transport_sequence, transport_wide, "{}", spec.name);
            assert_eq!(p.sender.abs_send_time, p.receive.controller.is_some(), "{}", spec.name);
            assert_eq!(p.send.per_packet_feedback, spec.feedback.is_some(), "{}", spec.name);
            assert_eq!((p.send.reports, p.receive.reports), (spec.reports, spec.reports), "{}", spec.name);
            assert_eq!(p.receive.feedback, spec.feedback, "{}", spec.name);
        }
        let unknown = Control::new(&registry, "none", &setup()).err();
        assert!(matches!(unknown, Some(SetupError::UnknownController { name }) if name == "none"));
    }

    #[test]
    fn the_other_end_has_its_sources_swapped() {
        let p = plan(&Registry::builtin(), "gcc");
        assert_eq!((p.receiver.ssrc, p.receiver.remote_ssrc), (8, 7));
        assert_eq!((p.receiver.repair_ssrc, p.receiver.remote_repair_ssrc), (None, Some(9)));
        assert_eq!((&p.receiver.cname[..], p.receiver.seed), ("b", 5));
        let (sender, receiver) = p.into_ends(Timestamp::ZERO);
        assert_eq!((sender.incoming_ids().count(), sender.outgoing_ids().count()), (0, 1));
        assert_eq!((receiver.incoming_ids().count(), receiver.outgoing_ids().count()), (1, 0));
    }
}
