//! Rides: the capacity of a call's LTE and Wi-Fi links.

use crate::draw::Draw;
use serde::Serialize;
use weir_lab::scenario::{InputError, builtin_file};
use weir_path::{Capacity, Schedule, Step, TraceFormat};
use weir_units::{DataRate, TimeDelta};

/// Length of a ride, s.
const RIDE_S: f64 = 120.0;
/// Mean rates of a generated ride in bit/s, uniform in the logarithm: from a crowded 3G cell to an LTE cell with room, and a hot spot.
const LTE: (f64, f64) = (400e3, 3e6);
const WIFI: (f64, f64) = (400e3, 4e6);
/// Rates over the mean one, and times in s for which they last. The rates of LTE are as on the radio links of `weir judge harm`.
const FADES: (f64, f64) = (0.2, 2.0);
const FADE_S: (f64, f64) = (0.5, 6.0);
/// The same of a Wi-Fi network that is left and found again.
const WIFI_FADES: (f64, f64) = (0.05, 2.0);
const WIFI_FADE_S: (f64, f64) = (3.0, 20.0);
/// Folder of the recorded rides among the shipped scenarios, and their names.
const FOLDER: &str = "rtp-cc-thesis/rides";
const RECORDED: [&str; 10] = [
    "norway-bus-5",
    "norway-bus-12",
    "norway-car-2",
    "norway-car-3",
    "norway-ferry-20",
    "norway-metro-3",
    "norway-metro-10",
    "norway-train-12",
    "norway-tram-20",
    "norway-tram-52",
];
/// Most rides of a kind that was recorded.
const MOST_RECORDED: usize = RECORDED.len();

/// Where a ride's cellular capacity is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RideKind {
    /// Drawn.
    Generated,
    /// Recorded; that of Wi-Fi is drawn.
    Recorded,
}

/// The capacity of a call's links on a ride.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ride {
    /// Its name.
    pub name: String,
    /// Where it is from.
    pub kind: RideKind,
    /// The cellular link.
    #[serde(skip)]
    pub(super) lte: Capacity,
    /// The Wi-Fi link.
    #[serde(skip)]
    pub(super) wifi: Capacity,
}

impl Ride {
    /// So many generated rides, and so many of the recorded ones, at most all. Errors: a ride that ships cannot be read.
    pub fn all(seed: u64, generated: usize, recorded: usize) -> Result<Vec<Self>, InputError> {
        let mut rides = Vec::new();
        for number in 1..=generated as u64 {
            let mut draw = Draw::of(seed, number);
            let lte = drawn(&mut draw, LTE, FADES, FADE_S)?;
            let wifi = drawn(&mut draw, WIFI, WIFI_FADES, WIFI_FADE_S)?;
            rides.push(Self { name: format!("generated-{number}"), kind: RideKind::Generated, lte, wifi });
        }
        for (name, number) in RECORDED.iter().zip(1_001..).take(recorded.min(MOST_RECORDED)) {
            let file = format!("{FOLDER}/{name}.csv");
            let error = |why: String| InputError::whole(&file, why);
            let text = builtin_file(&file).ok_or_else(|| error("it does not ship with Weir".into()))?;
            let lte = TraceFormat::detect(&file, text).parse(text, &file).map_err(|e| error(e.to_string()))?;
            let wifi = drawn(&mut Draw::of(seed, number), WIFI, WIFI_FADES, WIFI_FADE_S)?;
            rides.push(Self { name: (*name).into(), kind: RideKind::Recorded, lte, wifi });
        }
        Ok(rides)
    }
}

/// A capacity of drawn steps.
fn drawn(draw: &mut Draw, mean: (f64, f64), over: (f64, f64), time: (f64, f64)) -> Result<Capacity, InputError> {
    let (rate, mut at, mut steps) = (draw.log(mean), 0.0, Vec::new());
    while at < RIDE_S {
        let rate = DataRate::from_bps_f64(rate * draw.log(over));
        steps.push(Step { at: TimeDelta::from_secs_f64(at), rate });
        at += draw.log(time);
    }
    let schedule = Schedule::new(steps, None).map_err(|e| InputError::whole("generated ride", e.to_string()))?;
    Ok(Capacity::Schedule(schedule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rides_are_the_same_for_a_seed_and_all_recorded_ones_ship() {
        let rides = Ride::all(1, 10, 100).expect("rides");
        assert_eq!(rides.len(), 20);
        assert_eq!(rides, Ride::all(1, 10, 10).expect("rides"));
        assert_ne!(rides[0], Ride::all(2, 1, 0).expect("rides")[0]);
        for ride in &rides {
            for capacity in [&ride.lte, &ride.wifi] {
                let Capacity::Schedule(schedule) = capacity else { panic!("{}: {capacity:?}", ride.name) };
                let last = schedule.steps().last().expect("steps").at.as_secs_f64();
                assert!(schedule.steps().len() > 4 && last > 95.0, "{}: until {last} s", ride.name);
            }
        }
    }
}
