use super::{LookaheadError, MAX_CELLS, MAX_LENGTH_M, check_speed, in_range};
use crate::robust::weighted_quantile;
use crate::{Capacity, CapacityVector, Cell, Filter, Level, Position, Quantiles, Segment, View, WallTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weir_units::{DataRate, TimeDelta};

/// Half of the angle of the sector ahead, in degrees. Own choice: roads turn, and who turns off further than this is in a
/// new sector with the next look-ahead.
const HALF_ANGLE_DEG: f64 = 45.0;
/// Distance between positions that are looked at, in metres.
const STEP_M: f64 = 60.0;
/// Most rings of a sector: a longer way is looked at in longer steps.
const MAX_RINGS: f64 = 100.0;

/// A look-ahead without a route: the sector ahead of a moving end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Area {
    /// Here.
    pub position: Position,
    /// Direction of travel, degrees clockwise from north.
    pub heading_deg: f64,
    /// Speed, in m/s.
    pub speed_mps: f64,
    /// How far to look, in metres.
    pub radius_m: f64,
    /// Of which network.
    #[serde(default)]
    pub network: Filter,
}

impl Area {
    /// Returns the capacity expected at each distance ahead, at the time when it is reached in a straight line. Each stretch of time has
    /// the quantiles over the cells of its ring, all taken as equally likely.
    ///
    /// # Errors
    /// The request is out of range.
    pub fn look(&self, view: &impl View, now: WallTime) -> Result<CapacityVector, LookaheadError> {
        check_speed(self.speed_mps)?;
        in_range("heading in degrees", self.heading_deg, -360.0, 360.0)?;
        in_range("radius in metres", self.radius_m, 50.0, MAX_LENGTH_M / 10.0)?;
        let step = (self.radius_m / MAX_RINGS).max(STEP_M);
        let mut segments: Vec<Segment> = Vec::new();
        let mut asked = 0;
        let rings = libm::ceil(self.radius_m / step) as u32;
        for ring in 0..rings {
            let (near, far) = (f64::from(ring) * step, (f64::from(ring + 1) * step).min(self.radius_m));
            let cells = self.ring((near + far) / 2.0, step, view.resolution());
            asked += cells.len();
            if asked > MAX_CELLS {
                break;
            }
            let at = now.plus(TimeDelta::from_secs((near / self.speed_mps) as i64));
            let known: Vec<Capacity> =
                cells.iter().filter_map(|cell| view.capacity(*cell, &self.network, at)).collect();
            let capacity = mix(&known, cells.len());
            let (from_s, to_s) = ((near / self.speed_mps) as f32, (far / self.speed_mps) as f32);
            match segments.last_mut() {
                Some(last) if last.capacity == capacity => last.to_s = to_s,
                _ => segments.push(Segment { from_s, to_s, capacity }),
            }
        }
        Ok(CapacityVector { segments })
    }

    /// The cells at a distance within the sector.
    fn ring(&self, distance: f64, step: f64, resolution: h3o::Resolution) -> BTreeSet<Cell> {
        let arc = 2.0 * distance * HALF_ANGLE_DEG.to_radians();
        let parts = libm::ceil(arc / step).clamp(1.0, 40.0);
        let at = |i: u32| {
            let share = (f64::from(i) + 0.5) / parts;
            let angle = self.heading_deg + HALF_ANGLE_DEG * (2.0 * share - 1.0);
            self.position.offset(angle, distance).cell(resolution)
        };
        (0..parts as u32).map(at).collect()
    }
}

/// Quantiles over cells that are equally likely; `of` is their number with those that are not known, which lower the
/// confidence.
fn mix(known: &[Capacity], of: usize) -> Option<Capacity> {
    let mut pool: Vec<(f64, f64)> = Vec::new();
    for capacity in known {
        // The shares that the five quantiles stand for: what lies between the middles of neighbours.
        let shares = [0.175, 0.2, 0.25, 0.2, 0.175];
        let values = capacity.quantiles.values();
        pool.extend(values.iter().zip(shares).map(|(v, share)| (v.as_bps_f64(), share)));
    }
    let mut values = [DataRate::ZERO; 5];
    for (value, share) in values.iter_mut().zip(Quantiles::SHARES) {
        *value = DataRate::from_bps_f64(weighted_quantile(&mut pool, share)?);
    }
    let middle = |pick: &dyn Fn(&Capacity) -> Option<f32>| {
        let mut all: Vec<(f64, f64)> = known.iter().filter_map(|c| Some((f64::from(pick(c)?), 1.0))).collect();
        weighted_quantile(&mut all, 0.5).map(|v| v as f32)
    };
    let confidence: f32 = known.iter().map(|c| c.confidence).sum();
    Some(Capacity {
        quantiles: Quantiles::from_values(values),
        rtt_ms: middle(&|c| c.rtt_ms),
        loss: middle(&|c| c.loss),
        confidence: confidence / of.max(1) as f32,
        level: known.iter().map(|c| c.level).max().unwrap_or(Level::District),
    })
}
