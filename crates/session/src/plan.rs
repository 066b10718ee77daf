//! Makes the ends of a session, here for everybody: from lists of streams and paths ([`EndPlan`]), and for a controller
//! from a registry.
//!
//! A controller's entry ([`Spec`](weir_cc::Spec)) states the feedback, reports and header extensions that it requires.
//! [`Control`] applies them to the paths of one end, and [`CallPlan`] to both ends of a one-way call.

use crate::allocation::Demand;
use crate::config::{
    EndConfig, GroupConfig, HeaderExtensions, IncomingConfig, OutgoingConfig, PathConfig, ReceivingPath, SendingPath,
};
use crate::identity::StreamIdentity;
use weir_cc::tunable::SetupError;
use weir_cc::{FeedbackFormat, FeedbackPlan, Limits, Pair, Receiver, Registry, ReportPlan, Sender, Setup};
use weir_media::Source;
use weir_units::Ecn;

/// Parts of an end. A direction in which it has no stream or no path is absent for the whole call.
#[derive(Default)]
pub struct EndPlan {
    /// The end itself.
    pub end: EndConfig,
    /// The streams that it sends.
    pub outgoing: Vec<OutgoingConfig>,
    /// The streams that it receives.
    pub incoming: Vec<IncomingConfig>,
    /// Its paths: those with a sending direction, and those with a receiving one, are the first of the list, without a gap.
    /// Paths beyond [`MAX_PATHS`](crate::multipath::MAX_PATHS) are left out.
    pub paths: Vec<PathConfig>,
    /// How packets and rates are divided among several paths.
    pub group: GroupConfig,
}

impl EndPlan {
    /// An end without streams and paths.
    pub fn new(end: EndConfig) -> Self {
        Self { end, ..Self::default() }
    }
    /// Adds a stream that it sends.
    #[must_use]
    pub fn sends(mut self, stream: OutgoingConfig) -> Self {
        self.outgoing.push(stream);
        self
    }
    /// Adds a stream that it receives.
    #[must_use]
    pub fn receives(mut self, stream: IncomingConfig) -> Self {
        self.incoming.push(stream);
        self
    }
    /// Adds a path.
    #[must_use]
    pub fn on(mut self, path: impl Into<PathConfig>) -> Self {
        self.paths.push(path.into());
        self
    }
}

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
    pub fn configure(&self, extensions: &mut HeaderExtensions) {
        extensions.transport_sequence |= self.feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide);
        extensions.abs_send_time |= self.controller.receiver.is_some();
    }

    /// Both directions of a path, for one end or two, with all options off.
    pub fn into_directions(self) -> (SendingPath, ReceivingPath) {
        let (feedback, reports) = (self.feedback, self.reports);
        let sending = SendingPath {
            per_packet_feedback: feedback.is_some(),
            reports,
            ..SendingPath::new(self.controller.sender)
        };
        (sending, ReceivingPath { feedback, reports, controller: self.controller.receiver })
    }
}

/// Both ends of a one-way call: each stream and each path has a part at either. Fields may be changed before the ends are
/// made.
pub struct CallPlan {
    /// The end that sends media.
    pub sender: EndConfig,
    /// The end that receives it.
    pub receiver: EndConfig,
    /// The streams that the sender sends.
    pub outgoing: Vec<OutgoingConfig>,
    /// How the receiver receives it.
    pub incoming: Vec<IncomingConfig>,
    /// The paths at the sender, each with its controller.
    pub sending: Vec<SendingPath>,
    /// The paths at the receiver.
    pub receiving: Vec<ReceivingPath>,
    /// How the sender divides packets and rates among several paths.
    pub group: GroupConfig,
}

impl CallPlan {
    /// A call under `control`, with no streams so far. `sender` is the sending end's configuration, to which the
    /// controller's requirements are added; the receiving end mirrors it ([`EndConfig::mirrored`]).
    pub fn new(control: Control, mut sender: EndConfig, receiver: EndName) -> Self {
        control.configure(&mut sender.extensions);
        let receiver = sender.mirrored(receiver);
        let group = GroupConfig { ceiling: control.limits.ceiling, ..GroupConfig::default() };
        let (sending, receiving) = control.into_directions();
        let (sending, receiving) = (vec![sending], vec![receiving]);
        Self { sender, receiver, outgoing: Vec::new(), incoming: Vec::new(), sending, receiving, group }
    }

    /// A call of `source` as the only stream, by the sender's own source and with the other numbers of `identity`.
    pub fn of_source(control: Control, source: Source, sender: EndConfig, receiver: EndName) -> Self {
        let identity = StreamIdentity::of(sender.ssrc);
        let mut plan = Self::new(control, sender, receiver);
        plan.add_stream(identity, source, Demand::default());
        plan
    }

    /// Adds a stream to both ends, with all options off; returns its two parts.
    pub fn add_stream(
        &mut self,
        identity: StreamIdentity,
        source: Source,
        demand: Demand,
    ) -> (&mut OutgoingConfig, &mut IncomingConfig) {
        let incoming = IncomingConfig::new(identity, demand.media);
        let outgoing = OutgoingConfig::new(identity, source, demand);
        let places = (self.outgoing.len(), self.incoming.len());
        self.outgoing.push(outgoing);
        self.incoming.push(incoming);
        (&mut self.outgoing[places.0], &mut self.incoming[places.1])
    }

    /// Adds a path under a controller of the same name as the others'.
    pub fn add_path(&mut self, control: Control) {
        let (sending, receiving) = control.into_directions();
        self.sending.push(sending);
        self.receiving.push(receiving);
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

impl EndConfig {
    /// The other end of a call with the same settings: its sources are swapped, and no station reports to it.
    #[must_use]
    pub fn mirrored(&self, name: EndName) -> Self {
        Self {
            ssrc: self.remote_ssrc,
            remote_ssrc: self.ssrc,
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
    use crate::endpoint::StreamError;
    use weir_media::PerfectCodec;
    use weir_units::{DataRate, DataSize, Timestamp};

    fn setup() -> Setup {
        let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(2) };
        Setup { limits, start_rate: DataRate::from_kbps(300), now: Timestamp::ZERO, seed: 1, params: vec![] }
    }

    fn plan(registry: &Registry, name: &str) -> CallPlan {
        let control = Control::new(registry, name, &setup()).expect("built in");
        let source = PerfectCodec::packets(DataSize::from_bytes(1_000), Timestamp::ZERO).into();
        let sender = EndConfig { ssrc: 7, remote_ssrc: 8, ..EndConfig::default() };
        CallPlan::of_source(control, source, sender, EndName { cname: "b".into(), seed: 5 })
    }

    #[test]
    fn both_ends_have_what_every_controller_asks_for() {
        let registry = Registry::builtin();
        for spec in registry.specs() {
            let p = plan(&registry, &spec.name);
            let ([send], [receive]) = (&p.sending[..], &p.receiving[..]) else { panic!("one path") };
            let transport_wide = spec.feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide);
            assert_eq!(p.sender.extensions.transport_sequence, transport_wide, "{}", spec.name);
            assert_eq!(p.sender.extensions.abs_send_time, receive.controller.is_some(), "{}", spec.name);
            assert_eq!(send.per_packet_feedback, spec.feedback.is_some(), "{}", spec.name);
            assert_eq!((send.reports, receive.reports), (spec.reports, spec.reports), "{}", spec.name);
            assert_eq!(receive.feedback, spec.feedback, "{}", spec.name);
        }
        let unknown = Control::new(&registry, "none", &setup()).err();
        assert!(matches!(unknown, Some(SetupError::UnknownController { name }) if name == "none"));
    }

    #[test]
    fn the_other_end_has_its_sources_swapped() {
        let p = plan(&Registry::builtin(), "gcc");
        assert_eq!((p.receiver.ssrc, p.receiver.remote_ssrc), (8, 7));
        assert_eq!((&p.receiver.cname[..], p.receiver.seed), ("b", 5));
        let (sender, receiver) = p.into_ends(Timestamp::ZERO).expect("sources of their own");
        assert_eq!((sender.stats().incoming_ids().count(), sender.stats().outgoing_ids().count()), (0, 1));
        assert_eq!((receiver.stats().incoming_ids().count(), receiver.stats().outgoing_ids().count()), (1, 0));
    }

    #[test]
    fn an_end_of_two_streams_with_one_source_is_not_made() {
        let mut p = plan(&Registry::builtin(), "gcc");
        let source = PerfectCodec::packets(DataSize::from_bytes(1_000), Timestamp::ZERO).into();
        p.add_stream(StreamIdentity::of(7), source, Demand::default());
        assert_eq!(p.into_ends(Timestamp::ZERO).err(), Some(StreamError::SourceInUse(7)));
    }
}
