use crate::{Operator, Position, Technology, Update, WallTime};
use weir_units::{DataRate, TimeDelta};

/// Distance between parallel streets, in metres.
const BLOCK_M: f64 = 400.0;
/// Time between reports.
const STEP: TimeDelta = TimeDelta::from_secs(1);

/// A city whose coverage is a function of its seed: streets in a grid, capacity that varies over some hundred metres around
/// 1.5 Mbit/s, as in the 3G rides of H. Riiser et al. (MMSys 2013), and holes. For demonstrations, load and tests.
#[derive(Clone, Debug)]
pub struct City {
    seed: u64,
    corner: Position,
    /// Streets in each direction.
    streets: u32,
    operator: Operator,
}

/// SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014): one draw of a state.
fn hash(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn hash_of(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |state, part| hash(state ^ part.wrapping_mul(0x2545_f491_4f6c_dd1d)))
}

/// 0 to 1.
fn unit(parts: &[u64]) -> f64 {
    (hash_of(parts) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A draw of a normal distribution, by the sum of twelve uniform ones: within six standard deviations.
fn normal(parts: &[u64]) -> f64 {
    let state = hash_of(parts);
    (0..12).map(|i| unit(&[state, i])).sum::<f64>() - 6.0
}

impl City {
    /// A city of `streets` streets in each direction, 2 to 200, around Otaniemi.
    pub fn new(seed: u64, streets: u32) -> Self {
        let corner = Position::new(60.187, 24.833).unwrap_or_else(|_| unreachable!("a position"));
        let operator = "244-91".parse().unwrap_or_else(|_| unreachable!("a name"));
        Self { seed, corner, streets: streets.clamp(2, 200), operator }
    }

    /// The network that its devices use.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// A point of the street grid, in metres east and north of the corner.
    pub fn at(&self, east_m: f64, north_m: f64) -> Position {
        self.corner.offset(90.0, east_m).offset(0.0, north_m)
    }

    /// The median capacity at a place, in metres east and north of the corner.
    pub fn capacity(&self, east_m: f64, north_m: f64) -> DataRate {
        // Noise of cells of 700 m and of 250 m, smooth in between.
        let wave = |scale: f64, salt: u64| {
            let (x, y) = (east_m / scale, north_m / scale);
            let (i, j) = (libm::floor(x), libm::floor(y));
            let smooth = |t: f64| t * t * (3.0 - 2.0 * t);
            let (u, v) = (smooth(x - i), smooth(y - j));
            let corner =
                |a: f64, b: f64| 2.0 * unit(&[self.seed, salt, (i + a) as i64 as u64, (j + b) as i64 as u64]) - 1.0;
            let low = corner(0.0, 0.0) * (1.0 - u) + corner(1.0, 0.0) * u;
            let high = corner(0.0, 1.0) * (1.0 - u) + corner(1.0, 1.0) * u;
            low * (1.0 - v) + high * v
        };
        // One block in twenty is a hole.
        let block = |m: f64| libm::floor(m / BLOCK_M) as i64 as u64;
        if unit(&[self.seed, 3, block(east_m), block(north_m)]) < 0.05 {
            return DataRate::from_kbps(60);
        }
        DataRate::from_bps_f64(1.5e6 * libm::exp(0.9 * wave(700.0, 1) + 0.4 * wave(250.0, 2)))
    }

    /// The reports of one ride of a device, one a second for `seconds`: along the streets at 8 to 16 m/s, turning where it
    /// likes. What it measures varies around the capacity by a factor of 1.35 (standard deviation), and by its own modem's
    /// of 1.1. Rides of other numbers take other ways; ids rise with the number of the ride.
    pub fn ride(&self, device: u32, ride: u32, start: WallTime, seconds: u32) -> Vec<Update> {
        let who = [self.seed, 10, u64::from(device), u64::from(ride)];
        let draw = |salt: u64, i: u64| unit(&[hash_of(&who), salt, i]);
        let modem = libm::exp(0.1 * normal(&[self.seed, 11, u64::from(device)]));
        let speed = 8.0 + 8.0 * draw(0, 0);
        let most = f64::from(self.streets - 1);
        let (mut x, mut y) = (libm::floor(draw(1, 0) * most), libm::floor(draw(1, 1) * most));
        let mut heading = (draw(1, 2) * 4.0) as u32;
        let (mut along, mut corner) = (0.0, 0);
        let mut updates = Vec::new();
        for i in 0..u64::from(seconds) {
            along += speed / BLOCK_M;
            while along >= 1.0 {
                along -= 1.0;
                (x, y) = step(x, y, heading, 1.0);
                corner += 1;
                let turn = draw(2, corner);
                heading = (heading
                    + if turn < 0.2 {
                        1
                    } else if turn < 0.4 {
                        3
                    } else {
                        0
                    })
                    % 4;
            }
            // The city ends here: turn around, or along its border.
            for turn in [0, 1, 3, 2] {
                let (a, b) = step(x, y, (heading + turn) % 4, 1.0);
                if (0.0..=most).contains(&a) && (0.0..=most).contains(&b) {
                    heading = (heading + turn) % 4;
                    break;
                }
            }
            let (a, b) = step(x, y, heading, along);
            let (east, north) = (a * BLOCK_M, b * BLOCK_M);
            let noise = libm::exp(0.3 * normal(&[hash_of(&who), 4, i]));
            let rate = self.capacity(east, north).as_bps_f64() * modem * noise;
            let time = start.plus(STEP.mul_f64(i as f64));
            let id = (u64::from(ride) << 32) + i;
            let (position, rate) = (self.at(east, north), DataRate::from_bps_f64(rate));
            let mut update = Update::new(id, time, position, self.operator.clone(), Technology::Umts, rate);
            update.accuracy_m = 5.0;
            update.rtt_ms = Some((60.0 + 40.0 * draw(5, i)) as f32);
            updates.push(update);
        }
        updates
    }
}

fn step(x: f64, y: f64, heading: u32, by: f64) -> (f64, f64) {
    match heading {
        0 => (x, y + by),
        1 => (x + by, y),
        2 => (x, y - by),
        _ => (x - by, y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rides_stay_in_the_city_and_are_repeatable() {
        let city = City::new(7, 10);
        let start = WallTime::from_unix_millis(1_700_000_000_000);
        let ride = city.ride(3, 1, start, 900);
        assert_eq!((ride.len(), &ride), (900, &city.ride(3, 1, start, 900)));
        assert_ne!(ride[0].position, city.ride(3, 2, start, 1)[0].position);
        for pair in ride.windows(2) {
            let metres = pair[0].position.distance_m(pair[1].position);
            // A corner may be cut.
            assert!((5.0..16.1).contains(&metres), "{metres}");
            assert_eq!(pair[1].id, pair[0].id + 1);
        }
        let far = city.at(4_000.0, 4_000.0).distance_m(city.at(0.0, 0.0));
        assert!(ride.iter().all(|u| u.position.distance_m(city.at(0.0, 0.0)) < far));
        let mut rates: Vec<u64> = ride.iter().map(|u| u.throughput.as_bps() / 1_000).collect();
        rates.sort_unstable();
        assert!((700..3_000).contains(&rates[450]) && rates[0] < 400, "{} {}", rates[0], rates[450]);
    }
}
