//! Encoder models with named parameters.

use crate::codec::{Codec, ParamError, ParamValue};
use crate::rate_meter::RateMeter;
use crate::{Frame, FrameSource, FrameTraces, PerfectCodec, Source, StatisticalConfig, StatisticalSource, TraceSource};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

const KIND: &str = "codec parameter";
const FRAME_RATE: &str = "frame_rate";
const KEY_INTERVAL: &str = "key_interval";
const REACTION: &str = "reaction";
const BURST_FRAMES: &str = "burst_frames";
const BURST_SIZE: &str = "burst_size";
const SIZE_SCALE: &str = "size_scale";
const INTERVAL_SCALE: &str = "interval_scale";
const MIN_BIT_RATE: &str = "min_bit_rate";
const MAX_BIT_RATE: &str = "max_bit_rate";
const STATISTICAL: [&str; 9] = [
    FRAME_RATE,
    KEY_INTERVAL,
    REACTION,
    BURST_FRAMES,
    BURST_SIZE,
    SIZE_SCALE,
    INTERVAL_SCALE,
    MIN_BIT_RATE,
    MAX_BIT_RATE,
];

/// An encoder model with named parameters.
///
/// | name | of | unit |
/// |---|---|---|
/// | `frame_rate` | all | frames per second, 1 to 240 |
/// | `key_interval` | statistical | seconds between unrequested key frames, 0 for none |
/// | `reaction` | statistical | seconds without following a new target (tau_v of RFC 8593) |
/// | `burst_frames`, `burst_size` | statistical | frames and bytes (K_d and K_B of RFC 8593) |
/// | `size_scale`, `interval_scale` | statistical | 0 to 1 (SCALE_B and SCALE_t of RFC 8593) |
/// | `min_bit_rate`, `max_bit_rate` | statistical | bit/s |
#[derive(Debug)]
pub struct ModelCodec {
    model: Model,
    requested: DataRate,
    frame_rate: f64,
    given: RateMeter,
}

#[derive(Debug)]
enum Model {
    Perfect(PerfectCodec),
    Statistical(Box<StatisticalSource>),
    Trace(TraceSource),
}

macro_rules! each {
    ($model:expr, $s:ident => $call:expr) => {
        match $model {
            Model::Perfect($s) => $call,
            Model::Statistical($s) => $call,
            Model::Trace($s) => $call,
        }
    };
}

fn interval(frame_rate: f64) -> TimeDelta {
    TimeDelta::from_secs_f64(1.0 / frame_rate)
}

fn check_frame_rate(frame_rate: f64) -> Result<f64, ParamError> {
    if (1.0..=240.0).contains(&frame_rate) {
        Ok(frame_rate)
    } else {
        Err(ParamError::value(KIND, FRAME_RATE, frame_rate, "1 to 240 frames a second"))
    }
}

impl ModelCodec {
    /// The names accepted by [`Self::by_name`].
    pub const NAMES: [&'static str; 3] = ["perfect", "statistical", "trace"];

    /// The model of this name, with its first frame due at `start`: `perfect`, `statistical` (RFC 8593, section 5) or
    /// `trace` (section 6, with the bundled video chat).
    ///
    /// # Errors
    /// The name is unknown, or the frame rate is not supported.
    pub fn by_name(name: &str, frame_rate: f64, start: Timestamp, seed: u64) -> Result<Self, ParamError> {
        check_frame_rate(frame_rate)?;
        let at = interval(frame_rate);
        let model = match name {
            "perfect" => Model::Perfect(PerfectCodec::frames(at, start)),
            "statistical" => {
                let config = StatisticalConfig { frame_interval: at, ..StatisticalConfig::default() };
                let source = StatisticalSource::new(config, start, seed);
                Model::Statistical(Box::new(
                    source.map_err(|e| ParamError::value(KIND, e.field, &e.value, &e.expected))?,
                ))
            }
            "trace" => Model::Trace(TraceSource::new(FrameTraces::chat_720p(), at, start)),
            _ => return Err(ParamError::unknown("codec", name, &Self::NAMES)),
        };
        Ok(Self { model, requested: DataRate::ZERO, frame_rate, given: RateMeter::default() })
    }

    /// Converts it to a source.
    pub fn into_source(self) -> Source {
        Source::Codec(Box::new(self))
    }

    fn set_statistical(&mut self, name: &str, value: f64) -> Result<(), ParamError> {
        let Model::Statistical(source) = &mut self.model else {
            return Err(ParamError::unknown(KIND, name, &[FRAME_RATE]));
        };
        let mut config = *source.config();
        let seconds = TimeDelta::from_secs_f64(value);
        let rate = DataRate::from_bps(value.max(0.0) as u64);
        match name {
            KEY_INTERVAL => config.key_interval = (value != 0.0).then_some(seconds),
            REACTION => config.reaction = seconds,
            BURST_FRAMES => config.burst_frames = value.max(0.0) as u32,
            BURST_SIZE => config.burst_size = DataSize::from_bytes(value.max(0.0) as u64),
            SIZE_SCALE => config.size_scale = value,
            INTERVAL_SCALE => config.interval_scale = value,
            MIN_BIT_RATE => config.min_rate = rate,
            MAX_BIT_RATE => config.max_rate = rate,
            FRAME_RATE => config.frame_interval = interval(value),
            _ => return Err(ParamError::unknown(KIND, name, &STATISTICAL)),
        }
        source.set_config(config).map_err(|e| ParamError::value(KIND, name, value, &e.expected))
    }
}

impl FrameSource for ModelCodec {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        self.requested = rate;
        each!(&mut self.model, s => s.on_target(rate, now));
    }
    fn next_frame_at(&self) -> Option<Timestamp> {
        each!(&self.model, s => s.next_frame_at())
    }
    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let frame = each!(&mut self.model, s => s.poll_frame(now))?;
        self.given.add(&frame);
        Some(frame)
    }
    fn request_key_frame(&mut self, now: Timestamp) {
        each!(&mut self.model, s => s.request_key_frame(now));
    }
    fn generated_rate(&self) -> DataRate {
        each!(&self.model, s => s.generated_rate())
    }
}

impl Codec for ModelCodec {
    fn name(&self) -> &str {
        match self.model {
            Model::Perfect(_) => "perfect",
            Model::Statistical(_) => "statistical",
            Model::Trace(_) => "trace",
        }
    }

    fn param_names(&self) -> &[&'static str] {
        match self.model {
            Model::Statistical(_) => &STATISTICAL,
            _ => &STATISTICAL[..1],
        }
    }

    fn param(&self, name: &str) -> Result<ParamValue, ParamError> {
        let value = match (&self.model, name) {
            (_, FRAME_RATE) => self.frame_rate,
            (Model::Statistical(s), _) => {
                let c = s.config();
                match name {
                    KEY_INTERVAL => c.key_interval.map_or(0.0, TimeDelta::as_secs_f64),
                    REACTION => c.reaction.as_secs_f64(),
                    BURST_FRAMES => c.burst_frames.into(),
                    BURST_SIZE => c.burst_size.as_bytes() as f64,
                    SIZE_SCALE => c.size_scale,
                    INTERVAL_SCALE => c.interval_scale,
                    MIN_BIT_RATE => c.min_rate.as_bps_f64(),
                    MAX_BIT_RATE => c.max_rate.as_bps_f64(),
                    _ => return Err(ParamError::unknown(KIND, name, self.param_names())),
                }
            }
            _ => return Err(ParamError::unknown(KIND, name, self.param_names())),
        };
        Ok(value.into())
    }

    fn set_param(&mut self, name: &str, value: ParamValue, _: Timestamp) -> Result<(), ParamError> {
        if !self.param_names().contains(&name) {
            return Err(ParamError::unknown(KIND, name, self.param_names()));
        }
        let ParamValue::Number(value) = value else {
            return Err(ParamError::value(KIND, name, value, "a number"));
        };
        if name == FRAME_RATE {
            check_frame_rate(value)?;
        } else if !value.is_finite() || value < 0.0 {
            return Err(ParamError::value(KIND, name, value, "zero or a positive number"));
        }
        match &mut self.model {
            Model::Perfect(s) => s.set_interval(interval(value)),
            Model::Trace(s) => s.set_interval(interval(value)),
            Model::Statistical(_) => self.set_statistical(name, value)?,
        }
        if name == FRAME_RATE {
            self.frame_rate = value;
        }
        Ok(())
    }

    fn requested_bit_rate(&self) -> DataRate {
        self.requested
    }

    fn bit_rate(&self, now: Timestamp) -> DataRate {
        self.given.rate(now, interval(self.frame_rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(codec: &mut ModelCodec, from: i64, to: i64) -> usize {
        let frames = (from..to).filter_map(|ms| codec.poll_frame(Timestamp::from_millis(ms)));
        frames.count()
    }

    #[test]
    fn the_encoders_output_follows_its_target() {
        for (name, low, high) in [("perfect", 795.0, 805.0), ("statistical", 700.0, 900.0), ("trace", 500.0, 1_100.0)] {
            let mut c = ModelCodec::by_name(name, 25.0, Timestamp::ZERO, 1).unwrap();
            assert_eq!(c.bit_rate(Timestamp::ZERO), DataRate::ZERO);
            c.on_target(DataRate::from_kbps(800), Timestamp::ZERO);
            assert!((110..=135).contains(&run(&mut c, 0, 5_000)), "{name}");
            let given = c.bit_rate(Timestamp::from_secs(5)).as_kbps_f64();
            assert!((low..high).contains(&given), "{name}: {given}");
            assert_eq!((c.name(), c.requested_bit_rate()), (name, DataRate::from_kbps(800)));
        }
        // The statistical encoder does not go below its least rate.
        let mut c = ModelCodec::by_name("statistical", 25.0, Timestamp::ZERO, 1).unwrap();
        c.on_target(DataRate::from_kbps(50), Timestamp::ZERO);
        run(&mut c, 0, 5_000);
        assert!(c.bit_rate(Timestamp::from_secs(5)) > DataRate::from_kbps(100));
        assert_eq!(c.bit_rate(Timestamp::from_secs(7)), DataRate::ZERO, "it has stood still since");
    }

    #[test]
    fn parameters_are_read_back_and_errors_change_nothing() {
        let now = Timestamp::ZERO;
        let mut c = ModelCodec::by_name("statistical", 30.0, now, 1).unwrap();
        for name in STATISTICAL {
            let value = c.param(name).unwrap();
            c.set_param(name, value.clone(), now).unwrap();
            assert_eq!(c.param(name).unwrap(), value, "{name}");
        }
        c.set_param("reaction", 0.5.into(), now).unwrap();
        assert_eq!(c.param("reaction"), Ok(ParamValue::Number(0.5)));
        let wrong = [
            c.set_param("bitrate", 1.0.into(), now),
            c.set_param("size_scale", 2.0.into(), now),
            c.set_param("reaction", "quick".into(), now),
            c.set_param("reaction", f64::NAN.into(), now),
            c.set_param("max_bit_rate", 1.0.into(), now),
            c.set_param("frame_rate", 0.0.into(), now),
        ];
        let said: Vec<_> = wrong.into_iter().map(|r| r.unwrap_err().to_string()).collect();
        assert!(said[0].starts_with("codec parameter bitrate is not known: expected one of frame_rate, key_interval"));
        assert_eq!(said[1], "codec parameter size_scale is 2: expected a scale between 0 and 1 (RFC 8593: 0.15)");
        assert_eq!(said[2], "codec parameter reaction is quick: expected a number");
        assert_eq!(said[5], "codec parameter frame_rate is 0: expected 1 to 240 frames a second");
        assert_eq!(c.param("size_scale"), Ok(ParamValue::Number(0.15)));
        assert_eq!(c.param("frame_rate"), Ok(ParamValue::Number(30.0)));
        assert!(c.param("bitrate").is_err());
        let mut c = ModelCodec::by_name("perfect", 30.0, now, 1).unwrap();
        assert!(c.set_param("reaction", 0.5.into(), now).is_err() && c.param("reaction").is_err());
        assert!(ModelCodec::by_name("h264", 30.0, now, 1).is_err());
    }

    #[test]
    fn a_new_frame_rate_holds_from_the_next_frame() {
        for name in ModelCodec::NAMES {
            let mut c = ModelCodec::by_name(name, 50.0, Timestamp::ZERO, 1).unwrap();
            c.on_target(DataRate::from_kbps(800), Timestamp::ZERO);
            let fast = run(&mut c, 0, 4_000);
            c.set_param("frame_rate", 10.0.into(), Timestamp::from_secs(4)).unwrap();
            let slow = run(&mut c, 4_000, 8_000);
            assert!((180..=220).contains(&fast) && (36..=46).contains(&slow), "{name}: {fast} {slow}");
        }
    }
}
