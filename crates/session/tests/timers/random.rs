//! Random configurations of ends.

use super::*;

pub(crate) fn source(rng: &mut Pcg64Mcg, now: Timestamp) -> (Source, MediaKind) {
    match rng.random_range(0..4) {
        0 => (PerfectCodec::packets(DataSize::from_bytes(1_000), now).into(), MediaKind::Video),
        1 => (AudioSource::new(AudioConfig::default(), now, rng.random()).unwrap().into(), MediaKind::Audio),
        n => (PerfectCodec::frames(TimeDelta::from_millis(10 * n), now).into(), MediaKind::Video),
    }
}

pub(crate) fn limits(rng: &mut Pcg64Mcg) -> Limits {
    let floor = DataRate::from_bps(rng.random_range(0..300_000));
    Limits { floor, ceiling: floor + DataRate::from_bps(rng.random_range(0..8_000_000)) }
}

pub(crate) fn repair(rng: &mut Pcg64Mcg) -> RepairChoice {
    let scheme = match rng.random_range(0..6) {
        0 => Scheme::parity(5).unwrap(),
        1 => Scheme::interleaved(4, 4).unwrap(),
        2 => Scheme::reed_solomon(20, 5).unwrap(),
        3 => return RepairChoice::Fixed(Protection::Off),
        4 => Scheme::rlc(20, 4, 1).unwrap(),
        _ => return RepairChoice::Controller,
    };
    RepairChoice::Fixed(scheme.into())
}

pub(crate) fn params(rng: &mut Pcg64Mcg) -> SessionParams {
    let interval = [None, Some(0), Some(20), Some(60_000)][rng.random_range(0..4)];
    SessionParams {
        profile: if rng.random_bool(0.3) { Profile::Avp } else { Profile::Avpf },
        rtcp_interval: interval.map(TimeDelta::from_millis),
        ..SessionParams::default()
    }
}

pub(crate) fn playout(rng: &mut Pcg64Mcg) -> (Option<TimeDelta>, Option<AdaptivePlayout>) {
    let most = TimeDelta::from_millis(rng.random_range(0..600));
    match rng.random_range(0..3) {
        0 => (None, None),
        1 => (Some(most), None),
        _ => (None, Some(AdaptivePlayout::up_to(most))),
    }
}
