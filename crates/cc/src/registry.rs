//! The controllers by name: list and dispatch. Entries are described by [`crate::spec`].

use crate::controller::{Controller, Coupled, Limits, ProbeCluster, ReceiverController, Report, Target, TimeoutReason};
use crate::cue::{CapacityForecast, CapacityNotice, Cue, FramePlayout, QueueState, ReceivedPacket, SentPacket};
use crate::fec_probing::{self, FecProbing};
use crate::map_guided::{self, MapGuided};
use crate::spec::{Algorithm, Pair, Setup, Spec};
use crate::tunable::SetupError;
use std::sync::Arc;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Makes both halves for one of an algorithm's names.
type Make = Arc<dyn Fn(&str, &Setup) -> Result<Pair<Sender, Receiver>, SetupError> + Send + Sync>;

/// The controllers available by name: built-in ones and those added by a program. Each is also available with probing
/// of its steps by forward error correction, as `NAME+fec` ([`FecProbing`]), and bounded by a forecast of capacity, as
/// `NAME+map` ([`MapGuided`]).
#[derive(Clone)]
pub struct Registry {
    specs: Vec<Spec>,
    /// The `+fec` entry of each.
    probing: Vec<Spec>,
    /// The `+map` entry of each.
    guided: Vec<Spec>,
    /// The constructor of each.
    makes: Vec<Make>,
}

impl Registry {
    /// A registry of the built-in controllers.
    pub fn builtin() -> Self {
        let mut registry = Self { specs: Vec::new(), probing: Vec::new(), guided: Vec::new(), makes: Vec::new() };
        add_builtin(&mut registry);
        registry
    }
    /// Adds a controller from outside this crate. It replaces entries of the same names.
    pub fn add<A: Algorithm>(&mut self) {
        for spec in A::specs() {
            self.register(spec, |name, setup| {
                let pair = A::make(name, setup)?;
                Ok(Pair {
                    sender: Sender::Custom(Box::new(pair.sender)),
                    receiver: pair.receiver.map(|r| Receiver::Custom(Box::new(r))),
                })
            });
        }
    }
    /// Adds an entry and the function that makes its controller from the entry's name and a setup. It replaces an entry
    /// of the same name.
    pub fn register(
        &mut self,
        spec: Spec,
        make: impl Fn(&str, &Setup) -> Result<Pair<Sender, Receiver>, SetupError> + Send + Sync + 'static,
    ) {
        if let Some(old) = self.specs.iter().position(|s| s.name == spec.name) {
            self.specs.remove(old);
            self.probing.remove(old);
            self.guided.remove(old);
            self.makes.remove(old);
        }
        self.probing.push(fec_probing::spec(&spec));
        self.guided.push(map_guided::spec(&spec));
        self.specs.push(spec);
        self.makes.push(Arc::new(make));
    }
    /// All entries in the order of registration, without their `+fec` and `+map` entries.
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }
    /// The `+fec` entries of [`Self::specs`].
    pub fn probing_specs(&self) -> &[Spec] {
        &self.probing
    }
    /// The `+map` entries of [`Self::specs`].
    pub fn guided_specs(&self) -> &[Spec] {
        &self.guided
    }
    /// The entry of a name, including `+fec` and `+map` names.
    pub fn get(&self, name: &str) -> Option<&Spec> {
        self.specs.iter().chain(&self.probing).chain(&self.guided).find(|s| s.name == name)
    }
    /// Makes a controller by name. Errors: an unknown name, an unknown parameter, a value outside its range.
    pub fn make(&self, name: &str, setup: &Setup) -> Result<Pair<Sender, Receiver>, SetupError> {
        let plain = self.specs.iter().position(|s| s.name == name);
        if let Some(make) = plain.and_then(|i| self.makes.get(i)) {
            return make(name, setup);
        }
        let guided = self.guided.iter().position(|s| s.name == name);
        if let Some((inner, make)) = guided.and_then(|i| self.specs.get(i).zip(self.makes.get(i))) {
            let (config, setup) = map_guided::split(setup)?;
            let pair = make(&inner.name, &setup)?;
            let sender = MapGuided::new(config, pair.sender, &setup.start())?;
            return Ok(Pair { sender: Sender::MapGuided(Box::new(sender)), receiver: pair.receiver });
        }
        let probing = self.probing.iter().position(|s| s.name == name);
        let Some((inner, make)) = probing.and_then(|i| self.specs.get(i).zip(self.makes.get(i))) else {
            return Err(SetupError::UnknownController { name: name.into() });
        };
        let (config, setup) = fec_probing::split(setup)?;
        let pair = make(&inner.name, &setup)?;
        let sender = FecProbing::new(config, pair.sender, &setup.start())?;
        Ok(Pair { sender: Sender::FecProbing(Box::new(sender)), receiver: pair.receiver })
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

macro_rules! dispatch {
    ($self:ident, $enum:ident { $($var:ident)* }, $c:ident => $call:expr) => {
        match $self { $($enum::$var($c) => $call,)* $enum::Custom($c) => $call }
    };
}

macro_rules! controllers {
    ($($var:ident($ty:ty)),* $(,)?) => {
        /// A sender half: built-ins by enum, others boxed.
        #[non_exhaustive]
        pub enum Sender {
            $(#[doc = concat!("`", stringify!($ty), "`")] $var(Box<$ty>),)*
            /// Any of them with probing of its steps.
            FecProbing(Box<FecProbing<Sender>>),
            /// Any of them bounded by a forecast.
            MapGuided(Box<MapGuided<Sender>>),
            /// A controller from outside this crate.
            Custom(Box<dyn Controller>),
        }
        $(impl From<$ty> for Sender {
            fn from(c: $ty) -> Self { Self::$var(Box::new(c)) }
        })*
        impl Controller for Sender {
            fn on_packet_sent(&mut self, p: &SentPacket) { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.on_packet_sent(p)) }
            fn on_cue(&mut self, cue: &Cue<'_>) { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.on_cue(cue)) }
            fn on_limits(&mut self, l: Limits, now: Timestamp) { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.on_limits(l, now)) }
            fn coupled_rate(&self) -> Option<DataRate> { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.coupled_rate()) }
            fn on_coupled(&mut self, k: &Coupled, now: Timestamp) { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.on_coupled(k, now)) }
            fn on_queue(&mut self, q: &QueueState) { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.on_queue(q)) }
            fn on_timeout(&mut self, now: Timestamp) { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.on_timeout(now)) }
            fn target(&self) -> Target { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.target()) }
            fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.poll_timeout()) }
            fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.poll_probe(now)) }
            fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) { dispatch!(self, Sender { $($var)* FecProbing MapGuided }, c => c.metrics(out)) }
        }
        /// A receiver half: built-ins by enum, others boxed.
        #[non_exhaustive]
        pub enum Receiver {
            $(#[doc = concat!("That of `", stringify!($ty), "`")] $var(Box<<$ty as Algorithm>::Receiver>),)*
            /// A receiver half from outside this crate.
            Custom(Box<dyn ReceiverController>),
        }
        impl ReceiverController for Receiver {
            fn on_packet_received(&mut self, p: &ReceivedPacket) { dispatch!(self, Receiver { $($var)* }, c => c.on_packet_received(p)) }
            fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) { dispatch!(self, Receiver { $($var)* }, c => c.on_rtt(rtt, now)) }
            fn on_notice(&mut self, n: &CapacityNotice) { dispatch!(self, Receiver { $($var)* }, c => c.on_notice(n)) }
            fn on_forecast(&mut self, f: &CapacityForecast<'_>) { dispatch!(self, Receiver { $($var)* }, c => c.on_forecast(f)) }
            fn on_playout(&mut self, f: &FramePlayout) { dispatch!(self, Receiver { $($var)* }, c => c.on_playout(f)) }
            fn poll_timeout(&self) -> Option<Timestamp> { dispatch!(self, Receiver { $($var)* }, c => c.poll_timeout()) }
            fn poll_report(&mut self, now: Timestamp) -> Option<Report> { dispatch!(self, Receiver { $($var)* }, c => c.poll_report(now)) }
            fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) { dispatch!(self, Receiver { $($var)* }, c => c.metrics(out)) }
        }
        fn add_builtin(registry: &mut Registry) {
            $(for spec in <$ty as Algorithm>::specs() {
                registry.register(spec, |name, setup| {
                    let pair = <$ty as Algorithm>::make(name, setup)?;
                    let receiver = pair.receiver.map(|r| Receiver::$var(Box::new(r)));
                    Ok(Pair { sender: pair.sender.into(), receiver })
                });
            })*
        }
    };
}

controllers! {
    BbrRtc(crate::bbr_rtc::BbrRtc),
    Cnadu(crate::cnadu::Cnadu),
    DpFec(crate::dpfec::DpFec),
    Fbra(crate::fbra::Fbra),
    Fixed(crate::fixed::Fixed),
    Gcc(crate::gcc::Gcc),
    GccRemb(crate::gcc_remb::GccRemb),
    GccScream2(crate::gcc_scream2::GccScream2),
    LateScheduling(crate::foreseen::LateScheduling),
    Linphone(crate::linphone::Linphone),
    Nada(crate::nada::Nada),
    Omniscient(crate::foreseen::Omniscient),
    RateSwitching(crate::foreseen::RateSwitching),
    Rrtcc(crate::rrtcc::Rrtcc),
    RtcpAimd(crate::rtcp_aimd::RtcpAimd),
    RtcpThresholds(crate::rtcp_thresholds::RtcpThresholds),
    Scream(crate::scream::v1::Scream),
    Scream2(crate::scream::v2::Scream),
    Sluice(crate::sluice::Sluice),
    Tfrc(crate::tfrc::Tfrc),
    Tmmbr(crate::tmmbr::Tmmbr),
    TmmbrA(crate::tmmbr::TmmbrA),
    TmmbrB(crate::tmmbr::TmmbrB),
}
