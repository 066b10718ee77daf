//! Audio level.

/// The level of samples of 16 bits in -dBov: 0 for the loudest square wave, 127 for silence (RFC 6464, section 3, which
/// takes it from RFC 3389 and RFC 6465).
pub fn level_dbov(pcm: &[i16]) -> u8 {
    let power = mean_power(pcm);
    // 0 dBov is full scale; a sine reaches 3 dB less.
    let level = -10.0 * libm::log10(power.max(1e-13));
    libm::round(level.clamp(0.0, 127.0)) as u8
}

/// Mean square of samples, relative to full scale.
pub(super) fn mean_power(pcm: &[i16]) -> f64 {
    let sum: u64 = pcm.iter().map(|&s| (i64::from(s) * i64::from(s)) as u64).sum();
    sum as f64 / pcm.len().max(1) as f64 / (32_768.0 * 32_768.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_the_rfc() {
        assert_eq!(level_dbov(&[i16::MIN; 100]), 0);
        assert_eq!(level_dbov(&[0; 100]), 127);
        assert_eq!(level_dbov(&[]), 127);
        // A tenth of full scale is 20 dB lower.
        assert_eq!(level_dbov(&[3_277, -3_277]), 20);
        let sine: Vec<i16> =
            (0..4_800).map(|n| (32_767.0 * libm::sin(f64::from(n) * core::f64::consts::TAU / 48.0)) as i16).collect();
        assert_eq!(level_dbov(&sine), 3);
        assert_eq!(level_dbov(&[1]), 90);
    }
}
