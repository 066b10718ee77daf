//! The rate that material requires for every picture, and its scene cuts.

use crate::MediaError;
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use weir_units::{DataRate, TimeDelta};

/// Standard deviations from the median to the 10th or 90th percentile of a normal distribution.
const DECILE: f64 = 1.281_551_6;
/// Deviation of the logarithm of a scene's length: nine of ten scenes last from a third to three times the median.
const LENGTH_SIGMA: f64 = 0.7;
/// The shortest scene and the longest, as multiples of the mean.
const SHORTEST: f64 = 0.1;
const LONGEST: f64 = 8.0;
/// Deviation of the logarithm of the rate within a scene, and its correlation time.
const DRIFT_SIGMA: f64 = 0.15;
const DRIFT_TIME_S: f64 = 1.5;
/// The band of smooth material in standard deviations to each side, and its correlation time.
const BAND_SIGMAS: f64 = 2.6;
const BAND_TIME_S: f64 = 5.0;
/// Least rate of any material: an unchanged picture still has headers.
const LEAST_BPS: f64 = 2_000.0;

/// The kind of material.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Material {
    /// Scenes of different complexity with cuts between them.
    Movie,
    /// One scene that changes slowly.
    Conference,
}

/// The rate of material at best quality, as a random process.
///
/// It follows figure 3.2 of S. Jero, 2013; the figure's points are not published, its description is (section 3.5.1):
/// an action film "ranges from a few Kbits to 55 Mbits, usually staying in the 8-30 Mbit range", a videoconference
/// "stays within a 10 Mbit window over pretty much its whole length".
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MaterialConfig {
    /// Movie or conference.
    pub material: Material,
    /// The usual range of the rate: for a movie the 10th and 90th percentile of its scenes (8 and 30 Mbit/s), for a
    /// conference its whole band (17.4 and 27.4 Mbit/s, around the mean rate of 22.4 Mbit/s in section 4.2.2 without a
    /// limit on the encoder).
    pub usual: (DataRate, DataRate),
    /// The highest rate (55 Mbit/s).
    pub peak: DataRate,
    /// Mean length of a scene (3.6 s): table 4.2 has 375 I-frames in 12 minutes over UDP, of which about 72 are
    /// refreshes and at most 144 changes of rate (one per report), which leaves a cut every 3 to 4.5 s. Unused for a
    /// conference.
    pub scene_length: TimeDelta,
    /// Share of scenes that are titles (0.03), with hardly any rate; 0 for a conference.
    pub titles: f64,
    /// Rate of titles (8 kbit/s, "a few Kbits").
    pub title_rate: DataRate,
    /// Relative deviation of a frame's size from the process (0.15 for a movie, 0.08 for a conference); chosen here.
    pub frame_noise: f64,
}

impl MaterialConfig {
    /// The thesis's action film.
    pub const fn movie() -> Self {
        Self {
            material: Material::Movie,
            usual: (DataRate::from_mbps(8), DataRate::from_mbps(30)),
            peak: DataRate::from_mbps(55),
            scene_length: TimeDelta::from_millis(3_600),
            titles: 0.03,
            title_rate: DataRate::from_kbps(8),
            frame_noise: 0.15,
        }
    }

    /// The thesis's videoconference.
    pub const fn conference() -> Self {
        Self {
            material: Material::Conference,
            usual: (DataRate::from_kbps(17_400), DataRate::from_kbps(27_400)),
            titles: 0.0,
            frame_noise: 0.08,
            ..Self::movie()
        }
    }

    /// Checks every field. Errors: the first invalid one.
    pub fn check(&self) -> Result<(), MediaError> {
        let fail = |field, value: &dyn std::fmt::Display, expected| {
            Err(MediaError::new("scenes source", field, value, expected))
        };
        let (low, high) = self.usual;
        if low.as_bps_f64() < LEAST_BPS || high < low {
            return fail("usual", &format!("{low} to {high}"), "2 kbit/s or more, the lower rate first");
        }
        if self.peak < high {
            return fail("peak", &self.peak, "at least the upper end of the usual range");
        }
        let length = self.scene_length;
        if length < TimeDelta::from_millis(200) || length > TimeDelta::from_secs(3_600) {
            return fail("scene_length", &length, "200 ms to an hour");
        }
        if !(0.0..=1.0).contains(&self.titles) {
            return fail("titles", &self.titles, "a share from 0 to 1");
        }
        if self.title_rate > self.peak {
            return fail("title_rate", &self.title_rate, "at most the peak");
        }
        if !(0.0..=0.5).contains(&self.frame_noise) {
            return fail("frame_noise", &self.frame_noise, "a share from 0 to 0.5");
        }
        Ok(())
    }
}

/// A picture's demand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Wanted {
    /// Rate in bit/s at best quality.
    pub(super) bps: f64,
    /// This picture's random deviation, as a factor around 1.
    pub(super) factor: f64,
    /// Whether a scene begins.
    pub(super) cut: bool,
}

/// The process, picture by picture. Its random draws do not depend on the encoder's target.
#[derive(Clone, Debug)]
pub(super) struct Process {
    config: MaterialConfig,
    interval_s: f64,
    rng: Pcg64Mcg,
    /// Pictures left in the scene, its rate, and whether it is titles.
    left: u64,
    level_bps: f64,
    is_title: bool,
    /// A normal process of deviation 1.
    drift: f64,
}

impl Process {
    pub(super) fn new(config: MaterialConfig, interval: TimeDelta, mut rng: Pcg64Mcg) -> Self {
        let drift = normal(&mut rng);
        Self { config, interval_s: interval.as_secs_f64(), rng, left: 0, level_bps: 0.0, is_title: false, drift }
    }

    pub(super) fn next(&mut self) -> Wanted {
        let cut = self.left == 0;
        if cut {
            self.begin_scene();
        }
        self.left -= 1;
        let forget = match self.config.material {
            Material::Movie => DRIFT_TIME_S,
            Material::Conference => BAND_TIME_S,
        };
        let kept = libm::exp(-self.interval_s / forget);
        self.drift = self.drift * kept + normal(&mut self.rng) * libm::sqrt(1.0 - kept * kept);
        let (low, high) = (self.config.usual.0.as_bps_f64(), self.config.usual.1.as_bps_f64());
        let bps = match self.config.material {
            _ if self.is_title => self.level_bps,
            Material::Movie => self.level_bps * lognormal(self.drift, DRIFT_SIGMA),
            Material::Conference => {
                let half = (high - low) / 2.0;
                ((low + half) + self.drift * half / BAND_SIGMAS).clamp(low, high)
            }
        };
        let factor = lognormal(normal(&mut self.rng), self.config.frame_noise);
        Wanted { bps: bps.clamp(LEAST_BPS, self.config.peak.as_bps_f64()), factor, cut }
    }

    fn begin_scene(&mut self) {
        let c = self.config;
        if c.material == Material::Conference {
            self.left = u64::MAX;
            return;
        }
        let mean = c.scene_length.as_secs_f64();
        let length = mean * lognormal(normal(&mut self.rng), LENGTH_SIGMA).clamp(SHORTEST, LONGEST);
        self.left = ((length / self.interval_s + 0.5) as u64).max(1);
        self.is_title = uniform(&mut self.rng) < c.titles;
        let (low, high) = (c.usual.0.as_bps_f64(), c.usual.1.as_bps_f64());
        let sigma = libm::log(high / low) / (2.0 * DECILE);
        let level = libm::sqrt(low * high) * libm::exp(sigma * normal(&mut self.rng));
        self.level_bps = if self.is_title { c.title_rate.as_bps_f64() } else { level.min(c.peak.as_bps_f64()) };
        self.drift = normal(&mut self.rng);
    }
}

/// Uniform in the open interval from 0 to 1.
fn uniform(rng: &mut Pcg64Mcg) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
}

/// A draw of the standard normal distribution (Box and Muller).
fn normal(rng: &mut Pcg64Mcg) -> f64 {
    let (u, v) = (uniform(rng), uniform(rng));
    libm::sqrt(-2.0 * libm::log(u)) * libm::cos(core::f64::consts::TAU * v)
}

/// A factor with mean 1 from a draw of the standard normal distribution.
fn lognormal(draw: f64, sigma: f64) -> f64 {
    libm::exp(sigma * draw - sigma * sigma / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: TimeDelta = TimeDelta::from_millis(40);

    fn pictures(config: MaterialConfig, seconds: usize) -> Vec<Wanted> {
        let mut p = Process::new(config, FRAME, Pcg64Mcg::new(7));
        (0..seconds * 25).map(|_| p.next()).collect()
    }

    /// The share of pictures whose rate lies in a range.
    fn share(all: &[Wanted], range: std::ops::Range<f64>) -> f64 {
        all.iter().filter(|w| range.contains(&w.bps)).count() as f64 / all.len() as f64
    }

    #[test]
    fn a_movie_is_as_figure_3_2_is_described() {
        let all = pictures(MaterialConfig::movie(), 40_000);
        // "Usually 8-30 Mbit": 80 % of 97 % of the scenes, a little less because rates drift within scenes.
        let usual = share(&all, 8e6..30e6);
        assert!((0.70..0.80).contains(&usual), "{usual}");
        // "From a few Kbits to 55 Mbits".
        let titles = share(&all, 0.0..16e3);
        assert!((0.01..0.05).contains(&titles), "{titles}");
        let peak = all.iter().map(|w| w.bps).fold(0.0, f64::max);
        assert!(peak == 55e6 && share(&all, 50e6..55.1e6) < 0.03, "{peak}");
        // The mean is that of the log-normal distribution, sqrt(8 x 30) exp(0.5157^2 / 2) = 17.7, for 97 %.
        let mean = all.iter().map(|w| w.bps).sum::<f64>() / all.len() as f64;
        assert!((16.4e6..18.0e6).contains(&mean), "{mean}");
        // A cut every 3.6 s.
        let cuts = all.iter().filter(|w| w.cut).count() as f64;
        assert!((40_000.0 / cuts - 3.6).abs() < 0.1, "{cuts}");
    }

    #[test]
    fn a_conference_stays_in_its_band_without_a_cut() {
        let all = pictures(MaterialConfig::conference(), 3_000);
        assert_eq!(all.iter().filter(|w| w.cut).count(), 1);
        assert!(share(&all, 17.4e6..27.401e6) == 1.0);
        let mean = all.iter().map(|w| w.bps).sum::<f64>() / all.len() as f64;
        assert!((22.0e6..22.8e6).contains(&mean), "{mean}");
        // Smooth: nearly all changes between pictures are below a twentieth of the band.
        let steps = all.windows(2).filter(|w| (w[1].bps - w[0].bps).abs() < 0.8e6).count();
        assert!(steps as f64 > 0.98 * all.len() as f64, "{steps}");
    }

    #[test]
    fn factors_have_the_mean_one_and_their_deviation() {
        let all = pictures(MaterialConfig::movie(), 8_000);
        let n = all.len() as f64;
        let mean = all.iter().map(|w| w.factor).sum::<f64>() / n;
        let variance = all.iter().map(|w| (w.factor - mean) * (w.factor - mean)).sum::<f64>() / n;
        // exp(sigma^2) - 1 for sigma = 0.15 is 0.02276.
        assert!((mean - 1.0).abs() < 0.002 && (variance / 0.02276 - 1.0).abs() < 0.03, "{mean} {variance}");
    }

    #[test]
    fn invalid_material_is_named() {
        let wrong = |change: fn(&mut MaterialConfig)| {
            let mut c = MaterialConfig::movie();
            change(&mut c);
            c.check().expect_err("unsound").to_string()
        };
        assert!(wrong(|c| c.usual = (DataRate::from_mbps(9), DataRate::from_mbps(8))).contains("usual"));
        assert!(wrong(|c| c.peak = DataRate::from_mbps(20)).contains("peak is 20000 kbit/s"));
        assert!(wrong(|c| c.titles = 3.0).contains("titles is 3"));
        assert!(wrong(|c| c.frame_noise = f64::NAN).contains("frame_noise"));
        assert!(wrong(|c| c.scene_length = TimeDelta::ZERO).contains("scene_length"));
        assert!(MaterialConfig::conference().check().is_ok());
    }
}
