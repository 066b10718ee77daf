//! Detection of paths behind one bottleneck, from decisions over some time.

use crate::multipath::MAX_PATHS;
use weir_cc::coupled::DelayCorrelation;
use weir_cc::coupled::Group;
use weir_cc::coupled::{Detector, DetectorConfig};
use weir_cc::cue::PacketResult;
use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};

/// Decisions over which a pair of paths is observed, about 14 s.
const DECISIONS: u32 = 40;
/// A pair is coupled once it was grouped in this share of the decisions (RFC 8382, section 3.3.2), ...
const JOIN: f64 = 0.9;
/// ... and until it was grouped in less than this share.
const STAY: f64 = 0.5;
/// A pair is coupled from this correlation of its delays on, and until it is below the second (calibrated: 0.93 to 1 for
/// paths of one bottleneck; up to 0.86 for paths with their own, since all carry parts of the same frames).
const JOIN_CORRELATION: f64 = 0.9;
const STAY_CORRELATION: f64 = 0.86;

/// How paths are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    /// By the shape of their delays (RFC 8382).
    Shape,
    /// By delays that change together.
    Correlation,
}

/// The comparison, and its result for each pair of paths.
pub(super) struct Bottlenecks {
    compared: Compared,
    paths: usize,
    coupled: [[bool; MAX_PATHS]; MAX_PATHS],
    groups: [Option<Group>; MAX_PATHS],
}

enum Compared {
    /// With the decisions on each pair, the latest in the lowest bit: 1 if grouped.
    Shape(Box<Detector>, Box<[[u64; MAX_PATHS]; MAX_PATHS]>),
    /// With the time of the next decision.
    Correlation(DelayCorrelation, Timestamp),
}

impl Bottlenecks {
    pub(super) fn new(method: Method, paths: usize, now: Timestamp) -> Self {
        let compared = match method {
            Method::Shape => {
                let mut detector = Detector::new(DetectorConfig::default(), now);
                (0..paths as u32).for_each(|path| detector.add(path));
                Compared::Shape(Box::new(detector), Box::new([[0; MAX_PATHS]; MAX_PATHS]))
            }
            Method::Correlation => Compared::Correlation(DelayCorrelation::new(), now),
        };
        Self { compared, paths, coupled: [[false; MAX_PATHS]; MAX_PATHS], groups: [None; MAX_PATHS] }
    }

    /// Takes the results of feedback on a path; returns whether groups have changed.
    pub(super) fn on_packets(&mut self, path: usize, packets: &[PacketResult], now: Timestamp) -> bool {
        let key = path as u32;
        // The clocks are apart by a constant, which is not seen.
        let delay = |p: &PacketResult| -> Option<TimeDelta> {
            Some((p.arrival? - RemoteTimestamp::ZERO) - (p.departure - Timestamp::ZERO))
        };
        match &mut self.compared {
            Compared::Shape(detector, _) => {
                packets.iter().filter_map(delay).for_each(|d| detector.on_packet(key, d));
                let lost = packets.iter().filter(|p| p.arrival.is_none() && !p.was_lost).count();
                detector.on_lost(key, lost as u64);
                detector.on_timeout(now) && self.decide(now)
            }
            Compared::Correlation(delays, next) => {
                for p in packets {
                    if let Some(d) = delay(p) {
                        delays.on_packet(key, p.departure, d);
                    }
                }
                if now < *next {
                    return false;
                }
                *next = now + DetectorConfig::default().interval;
                self.decide(now)
            }
        }
    }

    fn decide(&mut self, now: Timestamp) -> bool {
        for i in 0..self.paths {
            for j in 0..i {
                let was = self.coupled[i][j];
                self.coupled[i][j] = match &mut self.compared {
                    Compared::Shape(detector, decisions) => {
                        let group = detector.group(i as u32);
                        let grouped = group.is_some() && group == detector.group(j as u32);
                        let history = &mut decisions[i][j];
                        *history = ((*history << 1) | u64::from(grouped)) & ((1 << DECISIONS) - 1);
                        let share = f64::from(history.count_ones()) / f64::from(DECISIONS);
                        share >= if was { STAY } else { JOIN }
                    }
                    Compared::Correlation(delays, _) => {
                        let least = if was { STAY_CORRELATION } else { JOIN_CORRELATION };
                        delays.of(i as u32, j as u32, now).map_or(was, |c| c >= least)
                    }
                };
            }
        }
        let before = self.groups;
        // A path belongs to the group of the first path that it is coupled with.
        for i in 0..self.paths {
            let first = (0..i).find(|&j| self.coupled[i][j]);
            self.groups[i] = Some(first.and_then(|j| self.groups[j]).unwrap_or(i as Group));
        }
        self.groups != before
    }

    /// The group of a path; one that no other path is in, if it shares no bottleneck.
    pub(super) fn group(&self, path: usize) -> Option<Group> {
        self.groups.get(path).copied().flatten()
    }
}
