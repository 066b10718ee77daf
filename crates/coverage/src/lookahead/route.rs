use super::{LookaheadError, MAX_CELLS, MAX_LENGTH_M, MAX_POINTS, check_speed, in_range};
use crate::{Capacity, CapacityVector, Cell, Filter, Position, Segment, View, WallTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_units::TimeDelta;

/// Distance at which a route is sampled, in metres: a third of a default cell's width at most.
const STEP_M: f64 = 25.0;

/// A look-ahead along a known route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Route {
    /// The route from here on, as points.
    #[serde(default)]
    pub points: Vec<Position>,
    /// The same as a polyline of Google's format with 5 decimals; `points` are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polyline: Option<String>,
    /// Speed, in m/s.
    pub speed_mps: f64,
    /// How far to look, in seconds. Default: 300.
    #[serde(default = "default_horizon")]
    pub horizon_s: f64,
    /// Of which network.
    #[serde(default)]
    pub network: Filter,
}

fn default_horizon() -> f64 {
    300.0
}

/// Decodes a polyline of Google's format with 5 decimals.
///
/// # Errors
/// A byte or a coordinate is out of range, the text ends within a number, or there are too many points.
pub fn decode_polyline(text: &str) -> Result<Vec<Position>, LookaheadError> {
    let mut bytes = text.bytes().enumerate();
    let (mut lat, mut lon) = (0_i64, 0_i64);
    let mut points = Vec::new();
    let mut number = |begin: usize| -> Result<Option<(i64, usize)>, LookaheadError> {
        let (mut value, mut shift) = (0_i64, 0);
        let mut last = begin;
        for (at, byte) in bytes.by_ref() {
            last = at;
            if !(63..=126).contains(&byte) || shift > 30 {
                return Err(LookaheadError::Polyline(at));
            }
            let bits = i64::from(byte - 63);
            value |= (bits & 31) << shift;
            shift += 5;
            if bits & 32 == 0 {
                return Ok(Some((if value & 1 == 1 { !(value >> 1) } else { value >> 1 }, at)));
            }
        }
        if shift == 0 { Ok(None) } else { Err(LookaheadError::Polyline(last)) }
    };
    let mut at = 0;
    while let Some((up, _)) = number(at)? {
        let Some((right, end)) = number(at)? else { return Err(LookaheadError::Polyline(at)) };
        at = end;
        lat = lat.saturating_add(up);
        lon = lon.saturating_add(right);
        let point = Position::new(lat as f64 * 1e-5, lon as f64 * 1e-5);
        points.push(point.map_err(|_| LookaheadError::Polyline(at))?);
        if points.len() > MAX_POINTS {
            return Err(LookaheadError::Points(points.len()));
        }
    }
    Ok(points)
}

/// Encodes positions as a polyline of Google's format with 5 decimals.
pub fn encode_polyline(points: impl IntoIterator<Item = Position>) -> String {
    let mut text = String::new();
    let mut before = [0_i64; 2];
    for point in points {
        let now = [point.lat(), point.lon()].map(|degrees| libm::round(degrees * 1e5) as i64);
        for (now, before) in now.into_iter().zip(before) {
            let difference = now - before;
            let mut rest = (difference << 1) ^ (difference >> 63);
            while rest >= 32 {
                text.push(char::from((rest & 31) as u8 + 32 + 63));
                rest >>= 5;
            }
            text.push(char::from(rest as u8 + 63));
        }
        before = now;
    }
    text
}

impl Route {
    /// Returns the capacity expected along the route, from `now` on. It ends with the route, the horizon, or after [`MAX_CELLS`] cells.
    ///
    /// # Errors
    /// The request is out of range.
    pub fn look(&self, view: &impl View, now: WallTime) -> Result<CapacityVector, LookaheadError> {
        check_speed(self.speed_mps)?;
        in_range("horizon", self.horizon_s, 1.0, 86_400.0)?;
        let decoded;
        let points = match &self.polyline {
            Some(text) => {
                decoded = decode_polyline(text)?;
                &decoded
            }
            None => &self.points,
        };
        if !(2..=MAX_POINTS).contains(&points.len()) {
            return Err(LookaheadError::Points(points.len()));
        }
        let length: f64 = points.windows(2).map(|leg| leg[0].distance_m(leg[1])).sum();
        in_range("length of the route in metres", length, 0.0, MAX_LENGTH_M)?;
        let mut walk = Walk::new(view, &self.network, now);
        let end = (self.speed_mps * self.horizon_s).min(length);
        let mut before = 0.0;
        'route: for leg in points.windows(2) {
            let long = leg[0].distance_m(leg[1]);
            let steps = libm::ceil(long / STEP_M).max(1.0);
            for i in 0..steps as u32 {
                let (share, next) = (f64::from(i) / steps, f64::from(i + 1) / steps);
                let (from, to) = (before + share * long, (before + next * long).min(end));
                if from >= end || walk.by_cell.len() >= MAX_CELLS {
                    break 'route;
                }
                // The middle of a step stands for it.
                let at = leg[0].toward(leg[1], (share + next) / 2.0);
                walk.step(at.cell(view.resolution()), from / self.speed_mps, to / self.speed_mps);
            }
            before += long;
        }
        Ok(CapacityVector { segments: walk.segments })
    }
}

/// Cells one after the other, each asked for once.
struct Walk<'a, V> {
    view: &'a V,
    network: &'a Filter,
    now: WallTime,
    by_cell: BTreeMap<Cell, Option<Capacity>>,
    segments: Vec<Segment>,
    last: Option<Cell>,
}

impl<'a, V: View> Walk<'a, V> {
    fn new(view: &'a V, network: &'a Filter, now: WallTime) -> Self {
        Self { view, network, now, by_cell: BTreeMap::new(), segments: Vec::new(), last: None }
    }

    fn step(&mut self, cell: Cell, from_s: f64, to_s: f64) {
        if to_s <= from_s {
            return;
        }
        if self.last == Some(cell) {
            if let Some(segment) = self.segments.last_mut() {
                segment.to_s = to_s as f32;
            }
            return;
        }
        self.last = Some(cell);
        let at = self.now.plus(TimeDelta::from_secs(from_s as i64));
        let ask = || self.view.capacity(cell, self.network, at);
        let capacity = *self.by_cell.entry(cell).or_insert_with(ask);
        match self.segments.last_mut() {
            Some(last) if last.capacity == capacity => last.to_s = to_s as f32,
            _ => self.segments.push(Segment { from_s: from_s as f32, to_s: to_s as f32, capacity }),
        }
    }
}
