//! The controllers by name: list and dispatch. Entries are described by [`crate::spec`].
//!
//! Names of the user may read files, names of strangers may not. `Registry::find` is for the command line and
//! scenarios, and asks families of controllers (`onnx:FILE`) for entries; `get` and `make` know only what was found or
//! is listed. The other end of a call receives a built-in name in place of a file's (`live::call::announced`), so that
//! it sends the reports needed and learns no path.

mod families;

use crate::controller::{Controller, Coupled, Limits, ProbeCluster, ReceiverController, Report, Target, TimeoutReason};
use crate::cue::{CapacityForecast, CapacityNotice, Cue, FramePlayout, QueueState, ReceivedPacket, SentPacket};
use crate::papers::vidaptive::Filled;
use crate::spec::{Algorithm, Pair, Setup, Shelf, Spec};
use crate::tunable::SetupError;
use crate::wrappers::fec_probing::{self, FecProbing};
use crate::wrappers::map_guided::{self, MapGuided};
use crate::wrappers::vidaptive as filled;
use families::Found;
use std::sync::Arc;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Makes both halves for one of an algorithm's names.
type Make = Arc<dyn Fn(&str, &Setup) -> Result<Pair<Sender, Receiver>, SetupError> + Send + Sync>;

/// An entry with its `+fec`, `+map` and `+vidaptive` entries, and what makes its controller: what a family gives for a name.
#[derive(Clone)]
pub struct Entry {
    spec: Spec,
    probing: Spec,
    guided: Spec,
    filled: Spec,
    make: Make,
}

impl Entry {
    /// An entry, and the function that makes its controller from the entry's name and a setup.
    pub fn new(
        spec: Spec,
        make: impl Fn(&str, &Setup) -> Result<Pair<Sender, Receiver>, SetupError> + Send + Sync + 'static,
    ) -> Self {
        let (probing, guided, filled) = (fec_probing::spec(&spec), map_guided::spec(&spec), filled::spec(&spec));
        Self { probing, guided, filled, spec, make: Arc::new(make) }
    }
}

/// Gives the entry of a name that begins with the family's prefix.
type Load = Arc<dyn Fn(&str) -> Result<Entry, SetupError> + Send + Sync>;

/// The controller of calls over UDP that name none.
pub const DEFAULT_CONTROLLER: &str = "sluice";
/// Greatest number of entries that families give a registry.
const MOST_FOUND: usize = 1024;

/// The controllers available by name: built-in ones and those added by a program. Each is also available with probing
/// of its steps by forward error correction, as `NAME+fec` ([`FecProbing`]), bounded by a forecast of capacity, as
/// `NAME+map` ([`MapGuided`]), and with padding where the encoder leaves room, as `NAME+vidaptive` ([`Filled`]).
#[derive(Clone)]
pub struct Registry {
    /// Entries in the order of registration.
    entries: Vec<Entry>,
    /// Prefixes of names, and what gives their entries.
    families: Vec<(String, Load)>,
    /// Entries that families have given.
    found: Arc<Found<Entry>>,
}

impl Registry {
    /// A registry of the built-in controllers.
    pub fn builtin() -> Self {
        let mut registry = Self { entries: Vec::new(), families: Vec::new(), found: Arc::new(Found::new()) };
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
        self.entries.retain(|e| e.spec.name != spec.name);
        self.entries.push(Entry::new(spec, make));
    }
    /// Adds controllers whose names begin with `prefix`: `load` gives the entry of such a name when [`Self::find`] is first
    /// asked for it, and may read files for that. They are in no list.
    pub fn add_family(
        &mut self,
        prefix: &str,
        load: impl Fn(&str) -> Result<Entry, SetupError> + Send + Sync + 'static,
    ) {
        self.families.retain(|(known, _)| known != prefix);
        self.families.push((prefix.into(), Arc::new(load)));
    }
    /// The entry of a name that the user of this program has given, on the command line or in a scenario. It asks the families
    /// for names not known yet; [`Self::get`] and [`Self::make`] know the name from then on. Names from elsewhere, such as the other
    /// end of a call, belong into [`Self::get`], which reads nothing.
    ///
    /// # Errors
    /// No controller has this name, or its family refuses it.
    pub fn find(&self, name: &str) -> Result<&Spec, SetupError> {
        let unknown = || SetupError::UnknownController { name: name.into() };
        if self.get(name).is_none() {
            let plain =
                [fec_probing::SUFFIX, map_guided::SUFFIX, filled::SUFFIX].iter().find_map(|s| name.strip_suffix(s));
            let plain = plain.unwrap_or(name);
            let family = self.families.iter().find(|(prefix, _)| plain.starts_with(prefix.as_str()));
            let (_, load) = family.ok_or_else(unknown)?;
            let mut entry = load(plain)?;
            if self.found.iter().count() >= MOST_FOUND {
                let why = format!("more than {MOST_FOUND} controllers of its kind");
                return Err(SetupError::Refused { controller: plain.into(), why });
            }
            entry = Entry { spec: Spec { name: plain.into(), ..entry.spec }, ..entry };
            self.found.add(plain, entry);
        }
        self.get(name).ok_or_else(unknown)
    }
    /// All entries in the order of registration, without those of wrappers.
    pub fn specs(&self) -> impl ExactSizeIterator<Item = &Spec> + Clone {
        self.entries.iter().map(|e| &e.spec)
    }
    /// The `+fec` entries of [`Self::specs`].
    pub fn probing_specs(&self) -> impl ExactSizeIterator<Item = &Spec> + Clone {
        self.entries.iter().map(|e| &e.probing)
    }
    /// The `+map` entries of [`Self::specs`].
    pub fn guided_specs(&self) -> impl ExactSizeIterator<Item = &Spec> + Clone {
        self.entries.iter().map(|e| &e.guided)
    }
    /// The `+vidaptive` entries of [`Self::specs`].
    pub fn filled_specs(&self) -> impl ExactSizeIterator<Item = &Spec> + Clone {
        self.entries.iter().map(|e| &e.filled)
    }
    /// Entries that were registered, then those that families have given.
    fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().chain(self.found.iter().map(|(_, e)| e))
    }
    /// The entry of a name, including those of wrappers.
    pub fn get(&self, name: &str) -> Option<&Spec> {
        // An entry of the whole name comes before one inside a wrapper.
        let plain = self.all().map(|e| &e.spec);
        plain.chain(self.all().flat_map(|e| [&e.probing, &e.guided, &e.filled])).find(|s| s.name == name)
    }
    /// Makes a controller by name.
    ///
    /// # Errors
    /// An unknown name, an unknown parameter, or a value outside its range.
    pub fn make(&self, name: &str, setup: &Setup) -> Result<Pair<Sender, Receiver>, SetupError> {
        if let Some(entry) = self.all().find(|e| e.spec.name == name) {
            return (entry.make)(name, setup);
        }
        for Entry { spec, probing, guided, filled, make } in self.all() {
            if guided.name == name {
                let (config, setup) = map_guided::split(setup)?;
                let pair = make(&spec.name, &setup)?;
                let sender = MapGuided::new(config, pair.sender, &setup.start())?;
                return Ok(Pair { sender: Sender::MapGuided(Box::new(sender)), receiver: pair.receiver });
            }
            if filled.name == name {
                let (config, setup) = filled::split(setup)?;
                let pair = make(&spec.name, &setup)?;
                let sender = filled::fill(config, pair.sender, &setup.start())?;
                return Ok(Pair { sender: Sender::Filled(Box::new(sender)), receiver: pair.receiver });
            }
            if probing.name == name {
                let (config, setup) = fec_probing::split(setup)?;
                let pair = make(&spec.name, &setup)?;
                let sender = FecProbing::new(config, pair.sender, &setup.start())?;
                return Ok(Pair { sender: Sender::FecProbing(Box::new(sender)), receiver: pair.receiver });
            }
        }
        Err(SetupError::UnknownController { name: name.into() })
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

impl From<Box<dyn Controller>> for Sender {
    fn from(controller: Box<dyn Controller>) -> Self {
        Self::Custom(controller)
    }
}

macro_rules! dispatch {
    ($self:ident, $enum:ident { $($var:ident)* }, $c:ident => $call:expr) => {
        match $self { $($enum::$var($c) => $call,)* $enum::Custom($c) => $call }
    };
}

macro_rules! controllers {
    ($($shelf:ident { $($var:ident($ty:ty),)* })*) => { controllers! { @flat $($(($shelf) $var($ty),)*)* } };
    (@flat $(($shelf:ident) $var:ident($ty:ty),)*) => {
        /// A sender half: built-ins by enum, others boxed.
        #[non_exhaustive]
        pub enum Sender {
            $(#[doc = concat!("`", stringify!($ty), "`")] $var(Box<$ty>),)*
            /// Any of them with probing of its steps.
            FecProbing(Box<FecProbing<Sender>>),
            /// Any of them bounded by a forecast.
            MapGuided(Box<MapGuided<Sender>>),
            /// Any of them with Vidaptive's pacer.
            Filled(Box<Filled<Sender>>),
            /// A controller from outside this crate.
            Custom(Box<dyn Controller>),
        }
        $(impl From<$ty> for Sender {
            fn from(c: $ty) -> Self { Self::$var(Box::new(c)) }
        })*
        // Each packet passes the functions marked so: the caller jumps to the controller's own.
        impl Controller for Sender {
            #[inline(always)]
            fn on_packet_sent(&mut self, p: &SentPacket) { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.on_packet_sent(p)) }
            fn on_cue(&mut self, cue: &Cue<'_>) { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.on_cue(cue)) }
            fn on_rtcp(&mut self, d: &[u8], now: Timestamp) -> bool { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.on_rtcp(d, now)) }
            fn on_limits(&mut self, l: Limits, now: Timestamp) { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.on_limits(l, now)) }
            fn coupled_rate(&self) -> Option<DataRate> { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.coupled_rate()) }
            fn on_coupled(&mut self, k: &Coupled, now: Timestamp) { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.on_coupled(k, now)) }
            #[inline(always)]
            fn on_queue(&mut self, q: &QueueState) -> bool { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.on_queue(q)) }
            fn on_timeout(&mut self, now: Timestamp) { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.on_timeout(now)) }
            fn target(&self) -> Target { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.target()) }
            #[inline(always)]
            fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.poll_timeout()) }
            #[inline(always)]
            fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.poll_probe(now)) }
            fn left_out_frames(&self) -> u32 { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.left_out_frames()) }
            fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) { dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.metrics(out)) }
        }
        impl Sender {
            /// Whether the target is another than `known`. It is compared where it is, not copied first.
            #[inline(always)]
            pub fn has_other_target(&self, known: &Target) -> bool {
                dispatch!(self, Sender { $($var)* FecProbing MapGuided Filled }, c => c.target() != *known)
            }
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
                registry.register(Spec { shelf: Shelf::$shelf, ..spec }, |name, setup| {
                    let pair = <$ty as Algorithm>::make(name, setup)?;
                    let receiver = pair.receiver.map(|r| Receiver::$var(Box::new(r)));
                    Ok(Pair { sender: pair.sender.into(), receiver })
                });
            })*
        }
    };
}

controllers! {
    Algorithms {
        BbrRtc(crate::algorithms::bbr_rtc::BbrRtc),
        Fixed(crate::algorithms::fixed::Fixed),
        Gcc(crate::algorithms::gcc::Gcc),
        Nada(crate::algorithms::nada::Nada),
        Scream(crate::algorithms::scream::v1::Scream),
        Scream2(crate::algorithms::scream::v2::Scream),
        Sluice(crate::algorithms::sluice::Sluice),
        Tfrc(crate::algorithms::tfrc::Tfrc),
    }
    Papers {
        Cnadu(crate::papers::cnadu::Cnadu),
        Copa(crate::papers::copa::Copa),
        DpFec(crate::papers::dpfec::DpFec),
        Fbra(crate::papers::fbra::Fbra),
        GccRemb(crate::papers::gcc_remb::GccRemb),
        GccScream2(crate::papers::gcc_scream2::GccScream2),
        LateScheduling(crate::papers::foreseen::LateScheduling),
        Linphone(crate::papers::linphone::Linphone),
        Ndtc(crate::papers::ndtc::Ndtc),
        Omniscient(crate::papers::foreseen::Omniscient),
        Pudica(crate::papers::pudica::Pudica),
        RateSwitching(crate::papers::foreseen::RateSwitching),
        Rrtcc(crate::papers::rrtcc::Rrtcc),
        RtcpAimd(crate::papers::rtcp_aimd::RtcpAimd),
        RtcpThresholds(crate::papers::rtcp_thresholds::RtcpThresholds),
        Sqp(crate::papers::sqp::Sqp),
        TfrcRtcp(crate::papers::tfrc_rtcp::TfrcRtcp),
        Tmmbr(crate::papers::tmmbr::Tmmbr),
        TmmbrA(crate::papers::tmmbr::TmmbrA),
        TmmbrB(crate::papers::tmmbr::TmmbrB),
        Vidaptive(crate::papers::vidaptive::Vidaptive),
        Vivace(crate::papers::vivace::Vivace),
    }
}
