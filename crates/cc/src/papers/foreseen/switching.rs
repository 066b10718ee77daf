//! Rate switching: the receiver asks for the least rate of a poor region before it is entered, and for the stream's after it.

use super::outlook::Outlook;
use super::{Config, SOURCE, stream};
use crate::controller::{Controller, Limits, ReceiverController, Report, Target};
use crate::cue::{CapacityForecast, Cue, ReceivedPacket, SentPacket};
use crate::spec::{Algorithm, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, Timestamp};

/// Sends a stream at the highest of its rates that the receiver's last TMMBR message allows.
#[derive(Clone, Debug)]
pub struct RateSwitching {
    config: Config,
    limits: Limits,
    stream: DataRate,
    request: Option<DataRate>,
}

impl RateSwitching {
    /// A sender at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        let stream = stream(&config, start)?;
        Ok(Self { config, limits: start.limits, stream, request: None })
    }
}

impl Algorithm for RateSwitching {
    type Receiver = SwitchingReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            adapts: false,
            foresees: true,
            params: Config::params(),
            ..Spec::new(
                "rate-switching",
                "TMMBR with a poor region's least rate before it, the stream's after it",
                SOURCE,
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, SwitchingReceiver>, SetupError> {
        let (config, start) = (Config::from_params(name, &setup.params)?, setup.start());
        Ok(Pair::both(Self::new(config, &start)?, SwitchingReceiver::new(config, &start)?))
    }
}

impl Controller for RateSwitching {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::ReceiverEstimate(estimate) = cue
            && !estimate.is_withdrawn()
        {
            self.request = Some(estimate.rate);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }
    fn target(&self) -> Target {
        let share = |rate: DataRate| DataRate::from_bps_f64(rate.as_bps_f64() * self.config.share);
        let below = self.request.filter(|request| *request < self.stream);
        let rate = below.map_or(self.stream, |request| self.config.level(self.stream, share(request)));
        Target::paced_by(self.limits.clamp(rate), self.config.pacing())
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("request_bps", self.request.map_or(f64::NAN, DataRate::as_bps_f64));
    }
}

/// The receiver: it looks ahead and asks.
#[derive(Clone, Debug)]
pub struct SwitchingReceiver {
    config: Config,
    stream: DataRate,
    outlook: Outlook,
    asked: Option<DataRate>,
    asked_at: Timestamp,
    now: Timestamp,
    /// Whether media has been received since the last request.
    news: bool,
}

impl SwitchingReceiver {
    /// A receiver without a forecast. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        let stream = stream(&config, start)?;
        let outlook = Outlook::default();
        Ok(Self { config, stream, outlook, asked: None, asked_at: start.now, now: start.now, news: false })
    }

    /// The rate to ask for: the least of the poor region that is entered within the lead, or the stream's.
    fn wanted(&self, now: Timestamp) -> DataRate {
        let needed = DataRate::from_bps_f64(self.stream.as_bps_f64() / self.config.share);
        let near = self.outlook.holes(needed, now).next().filter(|hole| hole.begin <= now + self.config.lead);
        near.map_or(self.stream, |hole| hole.least)
    }
}

impl ReceiverController for SwitchingReceiver {
    fn on_packet_received(&mut self, packet: &ReceivedPacket) {
        let _ = packet;
        self.news = true;
    }
    fn on_forecast(&mut self, forecast: &CapacityForecast<'_>) {
        self.outlook.set(forecast);
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        let repeat = (self.news && self.asked.is_some()).then(|| self.asked_at + self.config.repeat);
        let change = self.outlook.next_change(self.now, self.config.lead);
        [repeat, change].into_iter().flatten().min()
    }
    fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        self.now = self.now.max(now);
        let rate = self.wanted(now);
        let due = self.news && self.asked.is_some() && self.asked_at + self.config.repeat <= now;
        // Nothing is asked for before a first poor region.
        if !due && self.asked.unwrap_or(self.stream) == rate {
            return None;
        }
        (self.asked, self.asked_at, self.news) = (Some(rate), now, false);
        Some(Report::Tmmbr { rate })
    }
}
