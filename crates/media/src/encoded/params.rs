//! Parameters of an encoder used as a source.

use super::EncodedSource;
use crate::{Codec, ParamError, ParamValue, RateChange};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

const KIND: &str = "codec parameter";
const FRAME_RATE: &str = "frame_rate";
const KEY_INTERVAL: &str = "key_interval";
const LIBRARY: &str = "library";
const MIN_BIT_RATE: &str = "min_bit_rate";
const MAX_BIT_RATE: &str = "max_bit_rate";
const RATE_CHANGE: &str = "rate_change";
const SIZE: &str = "size";
const SLICE_SIZE: &str = "slice_size";
const PARAMS: [&str; 8] =
    [FRAME_RATE, KEY_INTERVAL, LIBRARY, MIN_BIT_RATE, MAX_BIT_RATE, RATE_CHANGE, SIZE, SLICE_SIZE];

impl Codec for EncodedSource {
    fn name(&self) -> &str {
        self.encoder.codec().name()
    }

    fn param_names(&self) -> &[&'static str] {
        &PARAMS
    }

    fn param(&self, name: &str) -> Result<ParamValue, ParamError> {
        let config = self.encoder.config();
        Ok(match name {
            FRAME_RATE => self.frame_rate.into(),
            KEY_INTERVAL => f64::from(config.key_interval.unwrap_or(0)).into(),
            LIBRARY => self.encoder.library().into(),
            MIN_BIT_RATE => self.bounds.0.as_bps_f64().into(),
            MAX_BIT_RATE => self.bounds.1.as_bps_f64().into(),
            RATE_CHANGE => match config.rate_change {
                RateChange::Seamless => "seamless".into(),
                RateChange::Restart => "restart".into(),
            },
            SIZE => ParamValue::Text(format!("{}x{}", config.width, config.height)),
            SLICE_SIZE => (config.slice_size.map_or(0, DataSize::as_bytes) as f64).into(),
            _ => return Err(ParamError::unknown(KIND, name, &PARAMS)),
        })
    }

    fn set_param(&mut self, name: &str, value: ParamValue, _: Timestamp) -> Result<(), ParamError> {
        let fixed = self.param(name)?;
        let number = match value {
            ParamValue::Number(n) if n.is_finite() && n >= 0.0 => n,
            _ if ![MIN_BIT_RATE, MAX_BIT_RATE, SLICE_SIZE].contains(&name) => -1.0,
            value => return Err(ParamError::value(KIND, name, value, "zero or a positive number")),
        };
        let rate = DataRate::from_bps(number.max(0.0) as u64);
        match name {
            MIN_BIT_RATE if rate > self.bounds.1 => {
                Err(ParamError::value(KIND, name, number, format!("at most max_bit_rate, {}", self.bounds.1.as_bps())))
            }
            MAX_BIT_RATE if rate < self.bounds.0 || rate == DataRate::ZERO => {
                let least = self.bounds.0.as_bps().max(1);
                Err(ParamError::value(KIND, name, number, format!("at least min_bit_rate, {least}")))
            }
            MIN_BIT_RATE => {
                self.bounds.0 = rate;
                Ok(())
            }
            MAX_BIT_RATE => {
                self.bounds.1 = rate;
                Ok(())
            }
            SLICE_SIZE => {
                let size = Some(DataSize::from_bytes(number as u64)).filter(|s| *s > DataSize::ZERO);
                self.encoder.set_slice_size(size).map_err(|e| ParamError::value(KIND, name, number, e))
            }
            _ => Err(ParamError::value(KIND, name, value, format!("{fixed}, as the encoder was made"))),
        }
    }

    fn requested_bit_rate(&self) -> DataRate {
        self.requested
    }

    fn bit_rate(&self, now: Timestamp) -> DataRate {
        self.given.rate(now, TimeDelta::from_secs_f64(1.0 / self.frame_rate))
    }
}
