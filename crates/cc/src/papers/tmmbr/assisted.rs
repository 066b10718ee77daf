//! Control with network assistance (V. Singh's dissertation, section 7.1): base stations announce the capacity of their
//! links.

use crate::controller::{Controller, Limits, ReceiverController, Report, Target, TimeoutReason};
use crate::cue::{CapacityNotice, Cue, QueueState, ReceivedPacket, SentPacket};
use crate::papers::cnadu::{self, Cnadu, REPORTS};
use crate::spec::{Algorithm, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, Gain, TimeDelta, Timestamp};

const SOURCE: &str = "Singh's dissertation (Aalto, 2015), section 7.1";

crate::tunables! {
    /// Configuration of both halves of TMMBR-A and TMMBR-B. The dissertation gives no numbers: the defaults were chosen here.
    pub struct AssistedConfig {
        /// Share of a capacity that media may use; the rest is for headers and variation of the encoder's rate.
        share: f64 = 0.9, 0.1 => 1.0;
        /// Change of the capacity, relative to the last request, that is requested at once.
        threshold: f64 = 0.05, 0.0 => 1.0;
        /// Interval at which the request is repeated while the capacity changes less, so that a lost message has no
        /// lasting effect.
        interval: TimeDelta = 1_000.0, 50.0 => 10_000.0;
        /// Pacing rate as a multiple of the media rate, so that a large frame does not wait.
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}

impl AssistedConfig {
    fn pacing(&self) -> Gain {
        Gain::new(self.pacing_factor).unwrap_or(Gain::ONE)
    }
}

/// The receiver of both variants: requests the capacity that the base station announces for its downlink.
#[derive(Clone, Debug)]
pub struct AssistedReceiver {
    config: AssistedConfig,
    /// Downlink capacity last announced.
    capacity: Option<DataRate>,
    asked: Option<DataRate>,
    asked_at: Timestamp,
    /// Whether media has been received since the last request.
    news: bool,
}

impl AssistedReceiver {
    /// A receiver with no known capacity. Errors: see [`AssistedConfig::check`].
    pub fn new(config: AssistedConfig, start: &Start) -> Result<Self, SetupError> {
        config.check("tmmbr-a")?;
        Ok(Self { config, capacity: None, asked: None, asked_at: start.now, news: false })
    }

    fn has_changed(&self, capacity: DataRate) -> bool {
        self.asked.is_none_or(|asked| {
            let (now, asked) = (capacity.as_bps_f64(), asked.as_bps_f64());
            (now - asked).abs() > self.config.threshold * asked
        })
    }
}

impl ReceiverController for AssistedReceiver {
    fn on_packet_received(&mut self, _: &ReceivedPacket) {
        self.news = true;
    }
    fn on_notice(&mut self, notice: &CapacityNotice) {
        self.capacity = Some(notice.rate);
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        (self.news && self.capacity.is_some()).then(|| self.asked_at + self.config.interval)
    }
    fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        let capacity = self.capacity?;
        let due = self.poll_timeout().is_some_and(|at| at <= now);
        if !due && !self.has_changed(capacity) {
            return None;
        }
        (self.asked, self.asked_at, self.news) = (Some(capacity), now, false);
        Some(Report::Tmmbr { rate: capacity })
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("way_in_bps", bps(self.capacity));
    }
}

fn bps(rate: Option<DataRate>) -> f64 {
    rate.map_or(f64::NAN, DataRate::as_bps_f64)
}

/// The lesser of two optional bounds.
fn lesser<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// TMMBR-A's sender: the lesser of its base station's uplink capacity and the receiver's request.
#[derive(Clone, Debug)]
pub struct TmmbrA {
    config: AssistedConfig,
    limits: Limits,
    start: DataRate,
    notice: Option<DataRate>,
    request: Option<DataRate>,
}

impl TmmbrA {
    /// A sender at the start rate. Errors: see [`AssistedConfig::check`].
    pub fn new(config: AssistedConfig, start: &Start) -> Result<Self, SetupError> {
        config.check("tmmbr-a")?;
        Ok(Self { config, limits: start.limits, start: start.rate, notice: None, request: None })
    }
}

impl Algorithm for TmmbrA {
    type Receiver = AssistedReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            params: AssistedConfig::params(),
            ..Spec::new("tmmbr-a", "Network-assisted: base stations signal to both ends their links' capacity", SOURCE)
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, AssistedReceiver>, SetupError> {
        let (config, start) = (AssistedConfig::from_params(name, &setup.params)?, setup.start());
        Ok(Pair::both(Self::new(config, &start)?, AssistedReceiver::new(config, &start)?))
    }
}

impl Controller for TmmbrA {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::CapacityNotice(notice) => self.notice = Some(notice.rate),
            Cue::ReceiverEstimate(estimate) if estimate.is_withdrawn() => {}
            Cue::ReceiverEstimate(estimate) => self.request = Some(estimate.rate),
            _ => {}
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }
    fn target(&self) -> Target {
        let known = lesser(self.notice, self.request);
        let rate = known.map(|c| DataRate::from_bps_f64(c.as_bps_f64() * self.config.share));
        let rate = self.limits.clamp(rate.unwrap_or(self.start));
        Target::paced_by(rate, self.config.pacing())
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("way_out_bps", bps(self.notice));
        out("request_bps", bps(self.request));
    }
}

/// TMMBR-B's sender: the lesser of its own estimate, computed as by C-NADU's sender, and the receiver's request.
#[derive(Clone, Debug)]
pub struct TmmbrB {
    config: AssistedConfig,
    limits: Limits,
    /// Uses the receiver's reports; the request is its receiver's estimate.
    own: Cnadu,
    request: Option<DataRate>,
}

impl TmmbrB {
    /// A sender at the start rate. Errors: see [`AssistedConfig::check`].
    pub fn new(config: AssistedConfig, start: &Start) -> Result<Self, SetupError> {
        config.check("tmmbr-b")?;
        let own = Cnadu::new(cnadu::Config::default(), start)?;
        Ok(Self { config, limits: start.limits, own, request: None })
    }
}

impl Algorithm for TmmbrB {
    type Receiver = AssistedReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            reports: Some(REPORTS),
            params: AssistedConfig::params(),
            ..Spec::new(
                "tmmbr-b",
                "Network-assisted: a base station signals to the receiver its link's capacity; the sender has C-NADU's \
                      estimate",
                SOURCE,
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, AssistedReceiver>, SetupError> {
        let (config, start) = (AssistedConfig::from_params(name, &setup.params)?, setup.start());
        Ok(Pair::both(Self::new(config, &start)?, AssistedReceiver::new(config, &start)?))
    }
}

impl Controller for TmmbrB {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.own.on_packet_sent(packet);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::ReceiverEstimate(estimate) if estimate.is_withdrawn() => {}
            Cue::ReceiverEstimate(estimate) => {
                let rate = DataRate::from_bps_f64(estimate.rate.as_bps_f64() * self.config.share);
                self.request = Some(rate);
                self.own.on_cue(&Cue::ReceiverEstimate(crate::cue::ReceiverEstimate { rate, ..*estimate }));
            }
            // The sender has no base station that announces a capacity.
            Cue::CapacityNotice(_) => {}
            _ => self.own.on_cue(cue),
        }
    }
    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.limits = limits;
        self.own.on_limits(limits, now);
    }
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.own.on_queue(queue)
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.own.on_timeout(now);
    }
    fn target(&self) -> Target {
        // C-NADU reduces the rate when delay grows; its own bound and the request are upper bounds.
        let rate = lesser(self.own.own().map(DataRate::from_bps_f64), self.request)
            .map_or(self.own.target().media_rate, |bound| bound.min(self.own.target().media_rate));
        let rate = self.limits.clamp(rate);
        Target::paced_by(rate, self.config.pacing())
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.own.poll_timeout()
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.own.metrics(out);
        out("request_bps", bps(self.request));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::{Channel, EstimateKind, Origin, ReportBlock};
    use crate::testing::{Kbps, REPORT, estimate, kbps};
    use weir_units::DataSize;

    const KBPS: Kbps = Kbps { floor: 32, start: 128, ceiling: 1_000 };
    fn notice(kbps: u64) -> CapacityNotice {
        CapacityNotice { now: Timestamp::ZERO, rate: DataRate::from_kbps(kbps) }
    }
    fn request(kbps: u64) -> Cue<'static> {
        estimate(kbps, EstimateKind::Tmmbr)
    }

    #[test]
    fn a_takes_the_lesser_of_both_ways() {
        let mut a: TmmbrA = KBPS.sender(&[]);
        assert_eq!(kbps(&a), 128.0);
        a.on_cue(&Cue::CapacityNotice(notice(400)));
        assert_eq!(kbps(&a), 360.0);
        a.on_cue(&request(200));
        assert_eq!(kbps(&a), 180.0);
        a.on_cue(&Cue::CapacityNotice(notice(100)));
        assert_eq!(kbps(&a), 90.0);
        a.on_cue(&Cue::CapacityNotice(notice(0)));
        assert_eq!(kbps(&a), 32.0);
        let cue = Cue::CapacityNotice(notice(1));
        assert_eq!((cue.origin(), cue.channel()), (Origin::OnPath, Channel::OutOfBand));
    }

    #[test]
    fn b_gets_no_notice_and_takes_the_lesser_of_its_estimate_and_the_request() {
        let mut b: TmmbrB = KBPS.sender(&[]);
        b.on_cue(&Cue::CapacityNotice(notice(40)));
        assert_eq!(kbps(&b), 128.0);
        b.on_cue(&request(900));
        assert_eq!(kbps(&b), 810.0);
        b.on_packet_sent(&SentPacket::media(Timestamp::ZERO, 0, DataSize::from_bytes(1_000)));
        // One packet in ten is lost at a round-trip time of 200 ms: TFRC's rate is below the request.
        b.on_cue(&Cue::ReportBlock(ReportBlock {
            now: Timestamp::from_secs(1),
            fraction_lost: 0.1,
            cumulative_lost: 10,
            highest_sequence: 100,
            rtt: Some(TimeDelta::from_millis(200)),
            ..REPORT
        }));
        let own = b.own.own().expect("an estimate") / 1e3;
        assert!((32.0..810.0).contains(&own) && (32.0..=own).contains(&kbps(&b)), "{own} {}", kbps(&b));
        b.on_cue(&request(50));
        assert_eq!(kbps(&b), 45.0);
    }

    #[test]
    fn the_receiver_asks_at_once_for_a_change_and_else_once_an_interval() {
        let mut r = KBPS.receiver::<TmmbrA>(&[]);
        let at = Timestamp::from_millis;
        assert_eq!((r.poll_report(at(5_000)), r.poll_timeout()), (None, None));
        r.on_notice(&notice(400));
        assert_eq!(r.poll_report(at(10)), Some(Report::Tmmbr { rate: DataRate::from_kbps(400) }));
        r.on_notice(&notice(390));
        assert_eq!(r.poll_report(at(20)), None);
        r.on_notice(&notice(370));
        assert_eq!(r.poll_report(at(30)), Some(Report::Tmmbr { rate: DataRate::from_kbps(370) }));
        // Without media no request is sent; with media, one per second.
        assert_eq!(r.poll_timeout(), None);
        r.on_packet_received(&crate::parts::frames::tests::packet(1, 0.0, 40.0, 1_000, true));
        assert_eq!((r.poll_timeout(), r.poll_report(at(1_029))), (Some(at(1_030)), None));
        assert!(r.poll_report(at(1_030)).is_some());
    }
}
