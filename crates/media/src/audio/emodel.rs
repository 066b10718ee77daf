//! The E-model of ITU-T G.107 (06/2015) for delay and loss: a rating for planning, not a measurement of what was heard.
//! Other inputs have the default values of its table 2.

use weir_units::TimeDelta;

/// Ro - Is with the default values (G.107, section 7.7: R is 93.2 without impairments).
const BEST: f64 = 93.2;
/// Delay above which it impairs, in ms (equation 7-27).
const FREE_DELAY_MS: f64 = 100.0;

/// A codec's impairment: its equipment impairment factor and packet-loss robustness.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CodecImpairment {
    /// Equipment impairment factor Ie without loss (0 to 95).
    pub ie: f64,
    /// Packet-loss robustness factor Bpl (above 0): the loss in percent that halves the remaining quality.
    pub bpl: f64,
}

impl CodecImpairment {
    /// G.711 with packet loss concealment by its appendix I, packets of 10 ms (ITU-T G.113, appendix I: Ie 0, Bpl
    /// 25.1). G.113 has no values for Opus, and the model is for narrowband telephony: for Opus this is a lower bound
    /// of quality without loss.
    pub const G711_PLC: Self = Self { ie: 0.0, bpl: 25.1 };
    /// G.711 with silence in place of lost packets (ITU-T G.113, appendix I: Ie 0, Bpl 4.3).
    pub const G711: Self = Self { ie: 0.0, bpl: 4.3 };
}

/// The impairment Idd of a one-way delay from mouth to ear (G.107, equations 7-27 and 7-28).
pub fn delay_impairment(delay: TimeDelta) -> f64 {
    let ms = delay.as_millis_f64();
    if ms <= FREE_DELAY_MS {
        return 0.0;
    }
    let x = libm::log2(ms / FREE_DELAY_MS);
    let term = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
    25.0 * (term(x) - 3.0 * term(x / 3.0) + 2.0)
}

/// The effective equipment impairment Ie,eff of random loss, from 0 to 1 (G.107, equation 7-29, BurstR 1).
pub fn loss_impairment(loss: f64, codec: CodecImpairment) -> f64 {
    let percent = loss.clamp(0.0, 1.0) * 100.0;
    if percent == 0.0 { codec.ie } else { codec.ie + (95.0 - codec.ie) * percent / (percent + codec.bpl) }
}

/// The transmission rating R, at least 0, for a one-way delay from mouth to ear and a share of samples lost and not
/// recovered (G.107, equation 7-1, A = 0).
pub fn rating(delay: TimeDelta, loss: f64, codec: CodecImpairment) -> f64 {
    (BEST - delay_impairment(delay) - loss_impairment(loss, codec)).max(0.0)
}

/// The mean opinion score MOS_CQE, 1 to 4.5, for a rating (G.107, equation B.4).
pub fn mos(r: f64) -> f64 {
    match r {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }

    #[test]
    fn nothing_impaired_is_the_best() {
        let r = rating(ms(50), 0.0, CodecImpairment::G711_PLC);
        assert_eq!(r, 93.2);
        // G.107, table B.1: R of 93.2 is a MOS of 4.41; 50 is 2.58 and 80 is 4.02.
        for (r, expected) in [(93.2, 4.41), (80.0, 4.02), (50.0, 2.58), (0.0, 1.0), (120.0, 4.5)] {
            assert!((mos(r) - expected).abs() < 0.006, "{r}: {}", mos(r));
        }
    }

    #[test]
    fn delay_and_loss_impair_as_in_the_equations() {
        assert_eq!(delay_impairment(ms(100)), 0.0);
        // At 200 ms x is 1: 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2).
        let by_hand = 25.0 * (2f64.powf(1.0 / 6.0) - 3.0 * (1.0 + 1.0 / 729.0f64).powf(1.0 / 6.0) + 2.0);
        assert!((delay_impairment(ms(200)) - by_hand).abs() < 1e-9 && (3.0..3.1).contains(&by_hand), "{by_hand}");
        // A loss of Bpl halves the rest.
        assert_eq!(loss_impairment(0.251, CodecImpairment::G711_PLC), 95.0 / 2.0);
        assert!(rating(ms(400), 0.5, CodecImpairment::G711) < 1.0);
        let mut last = 94.0;
        for step in 0..40 {
            let r = rating(ms(step * 20), step as f64 / 100.0, CodecImpairment::G711_PLC);
            assert!(r <= last && r >= 0.0);
            last = r;
        }
    }
}
