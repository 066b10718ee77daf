//! Answers.

use super::insert::LEAST_RATE;
use super::leaf::{Entry, decay_over};
use super::{Filter, LeafKey, Map, View};
use crate::robust::{consensus, weighted_quantile};
use crate::{Capacity, Cell, DecayedSketch, HourClass, Level, Quantiles, WallTime};
use h3o::Resolution;
use weir_units::DataRate;

/// Selects the leaves that count; `None` is all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) operator: Option<u16>,
    pub(super) technology: Option<u8>,
    pub(super) hours: Option<u8>,
}

impl Wanted {
    pub(super) fn includes(self, key: LeafKey) -> bool {
        self.operator.is_none_or(|o| o == key.operator)
            && self.technology.is_none_or(|t| t == key.technology)
            && self.hours.is_none_or(|h| h == key.hours)
    }
}

/// One device's reports, of one leaf or joined from several.
#[derive(Debug)]
pub(super) struct Voice {
    device: u32,
    sketch: DecayedSketch,
    rtt: Option<f64>,
    loss: Option<f64>,
    weight: f64,
}

fn coarser(resolution: Resolution, steps: u8) -> Resolution {
    Resolution::try_from(u8::from(resolution).saturating_sub(steps)).unwrap_or(Resolution::Zero)
}

impl View for Map {
    fn resolution(&self) -> Resolution {
        self.config.resolution
    }

    fn capacity_within(&self, cell: Cell, filter: &Filter, at: WallTime, furthest: Level) -> Option<Capacity> {
        let operator = match &filter.operator {
            Some(name) => Some(*self.operators.get(name)?),
            None => None,
        };
        let technology = filter.technology.map(crate::Technology::number);
        let hours = Some(HourClass::of(at, cell.center()).number());
        let exact = Wanted { operator, technology, hours };
        let any_hour = Wanted { hours: None, ..exact };
        let any_technology = Wanted { technology: None, ..any_hour };
        let (near, district) = (coarser(self.config.resolution, 1), coarser(self.config.resolution, 2));
        let mut levels = [
            (Level::Cell, self.config.resolution, Some(exact)),
            (Level::AnyHour, self.config.resolution, Some(any_hour)),
            (Level::Near, near, Some(any_hour)),
            (Level::AnyTechnology, near, Some(any_technology)),
            (Level::District, district, Some(any_technology)),
        ];
        if technology.is_none() {
            levels[3].2 = None;
        }
        let levels = levels.into_iter().filter_map(|(level, resolution, wanted)| Some((level, resolution, wanted?)));
        for (level, resolution, wanted) in levels.filter(|l| l.0 <= furthest) {
            if let Some(capacity) = self.answer(cell.parent(resolution), wanted, at, level) {
                return Some(capacity);
            }
        }
        None
    }
}

impl Map {
    /// Returns the capacities of the cells inside a coarser one, themselves and not from around them; `most` at most.
    pub fn cells_in(&self, area: Cell, filter: &Filter, at: WallTime, most: usize) -> Vec<(Cell, Capacity)> {
        let (first, last) = area.span(self.config.resolution);
        let cells = self.cells.range(first.index()..=last.index());
        let known = cells.filter_map(|(index, _)| {
            let cell = Cell::from_index(*index).ok()?;
            Some((cell, self.capacity_within(cell, filter, at, Level::AnyHour)?))
        });
        known.take(most).collect()
    }

    fn answer(&self, area: Cell, wanted: Wanted, at: WallTime, level: Level) -> Option<Capacity> {
        let mut entries: Vec<&Entry> = Vec::new();
        let (first, last) = area.span(self.config.resolution);
        for (_, leaves) in self.cells.range(first.index()..=last.index()) {
            for leaf in leaves.iter().filter(|l| wanted.includes(l.key)) {
                entries.extend(&leaf.entries);
            }
        }
        if entries.len() < self.config.anonymity {
            return None;
        }
        let voices = self.voices(entries, at);
        (voices.len() >= self.config.anonymity).then(|| self.combine(&voices, level)).flatten()
    }

    /// Reports by device, with the weight that each device has.
    pub(super) fn voices(&self, mut entries: Vec<&Entry>, at: WallTime) -> Vec<Voice> {
        entries.sort_by_key(|e| e.device);
        let mut voices: Vec<Voice> = Vec::with_capacity(entries.len());
        for entry in entries {
            let left = decay_over(at.since(entry.updated), self.config.half_life);
            match voices.last_mut() {
                Some(voice) if voice.device == entry.device => {
                    voice.sketch.merge(&entry.sketch, left);
                    voice.rtt = entry.rtt.value().or(voice.rtt);
                    voice.loss = entry.loss.value().or(voice.loss);
                }
                _ => {
                    let mut sketch = entry.sketch.clone();
                    sketch.decay(left);
                    let (rtt, loss) = (entry.rtt.value(), entry.loss.value());
                    voices.push(Voice { device: entry.device, sketch, rtt, loss, weight: 0.0 });
                }
            }
        }
        // A device that was here long ago counts no more, and one that is not trusted: for anonymity neither.
        let whole = f64::from(self.config.whole_weight);
        voices.retain_mut(|voice| {
            let share = (f64::from(voice.sketch.weight()) / whole).min(1.0);
            voice.weight = share * self.trust_of(voice.device);
            share > 0.02 && voice.weight > 0.0
        });
        voices
    }

    pub(super) fn combine(&self, voices: &[Voice], level: Level) -> Option<Capacity> {
        let log = |voice: &Voice| {
            let median = voice.sketch.quantile(0.5)?;
            Some((libm::log(median.as_bps_f64().max(LEAST_RATE)), voice.weight))
        };
        let mut medians: Vec<(f64, f64)> = voices.iter().map(|v| log(v).unwrap_or_default()).collect();
        let centre = consensus(&mut medians)?;
        let weights: Vec<f64> = medians.iter().map(|m| m.1).collect();
        let agreed: f64 = weights.iter().sum();

        let mut pooled: Vec<(f64, f64)> = Vec::new();
        for (voice, weight) in voices.iter().zip(&weights) {
            let scale = weight / f64::from(voice.sketch.weight()).max(1e-9);
            pooled.extend(voice.sketch.values().map(|(value, w)| (value, w * scale)));
        }
        let median = if centre <= libm::log(LEAST_RATE) + 1e-9 { 0.0 } else { libm::exp(centre) };
        let mut values = [DataRate::ZERO; 5];
        for (value, share) in values.iter_mut().zip(Quantiles::SHARES) {
            let rate = if share == 0.5 { median } else { weighted_quantile(&mut pooled, share)? };
            *value = DataRate::from_bps_f64(rate);
        }
        let of = |pick: &dyn Fn(&Voice) -> Option<f64>| {
            let known = voices.iter().zip(&weights).filter_map(|(v, w)| Some((pick(v)?, *w)));
            weighted_quantile(&mut known.collect::<Vec<_>>(), 0.5).map(|v| v as f32)
        };
        // As many devices that agree as an answer needs make it one half.
        let needed = self.config.anonymity.max(1) as f64;
        let confidence = (agreed / (agreed + needed)) as f32 * level.discount();
        Some(Capacity {
            quantiles: Quantiles::from_values(values),
            rtt_ms: of(&|v| v.rtt),
            loss: of(&|v| v.loss),
            confidence,
            level,
        })
    }
}
