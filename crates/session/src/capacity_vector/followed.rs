//! The other end's vector of a path: whether it is taken, and what it says.

use super::proof::Proof;
use weir_cc::cue::{ForecastSegment, PacketResult};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
use weir_wire::rtcp::CapacityVector;

/// A stretch of the present whose median is less than the rate that feedback has just shown, divided by this, is wrong: on
/// rides through other people's maps the two differ by a factor of 1.7 to 4 (`docs/coverage.md`, medians of 16 rides).
const CONTRADICTION: f64 = 4.0;
/// Time for which a vector is followed after the last packet with it, however long it is valid: repetitions are 8 s apart, and a
/// datagram without any would otherwise hold a call for 109 minutes. Seven of them in a row are lost less often than once in a
/// million at a loss of 10 %.
const FOLLOWED: TimeDelta = TimeDelta::from_secs(60);

/// The fate of a received vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It is the newest: [`Followed::segments`] has it, and whether its stretch of the present was left out.
    Taken {
        is_contradicted: bool,
    },
    /// It is the one that is followed. Where that says more than what was passed on, [`Followed::segments`] has more of it now.
    Repeated {
        is_longer: bool,
    },
    Stale,
    Foreign,
    Faulty,
}

/// The vector that an end follows.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Its sender and its serial number.
    latest: Option<(u32, u16)>,
    /// All of it, from its arrival on.
    whole: Vec<ForecastSegment>,
    arrived: Timestamp,
    /// The part that is followed without a further packet, from the last one on.
    segments: Vec<ForecastSegment>,
    proof: Proof,
}

impl Followed {
    /// A vector has come from the other end, whose source is `remote`, 0 if that is unknown: then the first sender is
    /// believed.
    pub(crate) fn on_vector(&mut self, vector: &CapacityVector<'_>, remote: u32, now: Timestamp) -> Verdict {
        let from = if remote != 0 { remote } else { self.latest.map_or(vector.sender_ssrc, |(ssrc, _)| ssrc) };
        if vector.sender_ssrc != from {
            return Verdict::Foreign;
        }
        let serial = self.latest.filter(|(ssrc, _)| *ssrc == from).map(|(_, serial)| serial);
        match serial {
            Some(serial) if serial == vector.serial => return Verdict::Repeated { is_longer: self.renew(now) },
            Some(serial) if !vector.is_newer_than(serial) => return Verdict::Stale,
            _ => {}
        }
        if vector.check().is_err() {
            return Verdict::Faulty;
        }
        self.latest = Some((from, vector.serial));
        Verdict::Taken { is_contradicted: self.take(vector, now) }
    }

    /// Keeps what the vector says from now on; returns whether feedback contradicts it.
    fn take(&mut self, vector: &CapacityVector<'_>, now: Timestamp) -> bool {
        let (age, most) = (vector.age.time(), vector.validity.time() - vector.age.time());
        let proven = self.proof.rate(now).map_or(0.0, DataRate::as_bps_f64);
        let (mut end, mut is_contradicted) = (TimeDelta::ZERO, false);
        self.whole.clear();
        for e in vector.entries {
            let begin = end;
            end += e.duration.time();
            let (from, to) = ((begin - age).max(TimeDelta::ZERO), (end - age).min(most));
            if e.confidence == 0 || to <= from {
                continue;
            }
            let (low, median) = (e.low.rate(), e.median.rate());
            if from == TimeDelta::ZERO && proven > CONTRADICTION * median.as_bps_f64() {
                is_contradicted = true;
                continue;
            }
            let confidence = f64::from(e.confidence) / 255.0;
            self.whole.push(ForecastSegment { from, to, low, median, confidence });
        }
        self.arrived = now;
        self.cut(now);
        is_contradicted
    }

    /// The vector has come again, whatever this packet says; returns whether it is followed for longer now.
    fn renew(&mut self, now: Timestamp) -> bool {
        let is_longer = self.whole.last().is_some_and(|s| s.to > FOLLOWED);
        if is_longer {
            self.cut(now);
        }
        is_longer
    }

    /// Takes of the whole what is followed from `now` on.
    fn cut(&mut self, now: Timestamp) {
        let age = now.saturating_since(self.arrived);
        let shifted = |s: &ForecastSegment| {
            let (from, to) = ((s.from - age).max(TimeDelta::ZERO), (s.to - age).min(FOLLOWED));
            (from < to).then_some(ForecastSegment { from, to, ..*s })
        };
        self.segments.clear();
        self.segments.extend(self.whole.iter().filter_map(shifted));
    }

    /// Stretches of the newest vector, from the arrival of the last packet with it on.
    pub(crate) fn segments(&self) -> &[ForecastSegment] {
        &self.segments
    }

    /// Its sender.
    pub(crate) fn sender(&self) -> Option<u32> {
        self.latest.map(|(ssrc, _)| ssrc)
    }

    /// This source has left; returns whether its vector was followed.
    pub(crate) fn on_left(&mut self, ssrc: u32) -> bool {
        self.latest.take_if(|(from, _)| *from == ssrc).is_some()
    }

    /// Feedback by packet.
    pub(crate) fn on_packets(&mut self, results: &[PacketResult], now: Timestamp) {
        self.proof.on_packets(results, now);
    }
    /// A report block, when this many bytes had been sent in all.
    pub(crate) fn on_block(&mut self, sent: DataSize, fraction_lost: f64, now: Timestamp) {
        self.proof.on_block(sent, fraction_lost, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{Ecn, RemoteTimestamp};
    use weir_wire::rtcp::{CapacityEntry, ShortRate, Tenths};

    const NOW: Timestamp = Timestamp::from_secs(100);

    fn entry(tenths: u16, kbps: u64) -> CapacityEntry {
        let rate = ShortRate::new(DataRate::from_kbps(kbps));
        CapacityEntry { duration: Tenths::from_units(tenths), confidence: 255, low: rate, median: rate }
    }
    fn vector(serial: u16, age: u16, entries: &[CapacityEntry]) -> CapacityVector<'_> {
        let (validity, age) = (Tenths::from_units(300), Tenths::from_units(age));
        CapacityVector { sender_ssrc: 2, media_ssrc: 1, serial, validity, age, entries: entries.into() }
    }
    fn rows(f: &Followed) -> Vec<(f64, f64, u64)> {
        let row = |s: &ForecastSegment| (s.from.as_secs_f64(), s.to.as_secs_f64(), s.median.as_bps() / 1_000);
        f.segments().iter().map(row).collect()
    }

    #[test]
    fn the_newest_of_the_other_end_is_taken() {
        let mut f = Followed::default();
        let entries = [entry(50, 1_024)];
        let taken = Verdict::Taken { is_contradicted: false };
        let mut hear = |serial, remote| f.on_vector(&vector(serial, 0, &entries), remote, NOW);
        assert_eq!(hear(0xffff, 2), taken);
        assert_eq!(
            [hear(0xffff, 2), hear(0xfffe, 2), hear(3, 9)],
            [Verdict::Repeated { is_longer: false }, Verdict::Stale, Verdict::Foreign]
        );
        // Serial numbers wrap.
        assert_eq!([hear(2, 2), hear(0xffff, 2)], [taken, Verdict::Stale]);
        // While the other end's source is unknown, that of the first vector is believed.
        let mut other = Followed::default();
        assert_eq!(other.on_vector(&vector(1, 0, &entries), 0, NOW), taken);
        let stranger = CapacityVector { sender_ssrc: 3, ..vector(2, 0, &entries) };
        assert_eq!(other.on_vector(&stranger, 0, NOW), Verdict::Foreign);
        // Another end starts its own serial numbers.
        assert!(other.on_left(2) && !other.on_left(2));
        assert_eq!(other.on_vector(&CapacityVector { serial: 0, ..stranger }, 0, NOW), taken);
    }

    #[test]
    fn stretches_count_from_their_arrival() {
        let mut f = Followed::default();
        let unknown = CapacityEntry { confidence: 0, ..entry(20, 0) };
        let entries = [entry(50, 1_024), unknown, entry(100, 64), entry(1_000, 512)];
        f.on_vector(&vector(1, 30, &entries), 2, NOW);
        // 27 s of the 30 are left.
        assert_eq!(rows(&f), [(0.0, 2.0, 1_024), (4.0, 14.0, 64), (14.0, 27.0, 512)]);
        // One that is past says nothing.
        f.on_vector(&vector(2, 299, &[entry(50, 64)]), 2, NOW);
        assert_eq!(rows(&f), []);
    }

    #[test]
    fn without_repetitions_it_is_followed_for_a_minute() {
        let rows = |f: &Followed| -> Vec<(i64, i64, u64)> {
            let kbps = |s: &ForecastSegment| s.median.as_bps() / 1_000;
            f.segments().iter().map(|s| (s.from.as_millis(), s.to.as_millis(), kbps(s))).collect()
        };
        let mut f = Followed::default();
        let entries = [entry(100, 1_024), entry(30_000, 64)];
        let long = CapacityVector { validity: Tenths::from_units(u16::MAX), ..vector(1, 0, &entries) };
        f.on_vector(&long, 2, NOW);
        assert_eq!(rows(&f), [(0, 10_000, 1_024), (10_000, 60_000, 64)]);
        // The repetition counts, and not what it says.
        let other = [entry(30_000, 9)];
        let again = CapacityVector { entries: (&other).into(), ..long };
        let heard = f.on_vector(&again, 2, NOW + TimeDelta::from_secs(8));
        assert_eq!(
            (heard, rows(&f)),
            (Verdict::Repeated { is_longer: true }, vec![(0, 2_000, 1_024), (2_000, 60_000, 64)])
        );
        f.on_vector(&again, 2, NOW + TimeDelta::from_secs(3_000));
        assert_eq!(rows(&f), [(0, 10_000, 64)]);
        // Of one that ends before, nothing is passed on again.
        f.on_vector(&vector(2, 0, &[entry(500, 64)]), 2, NOW);
        assert_eq!(f.on_vector(&vector(2, 9, &other), 2, NOW), Verdict::Repeated { is_longer: false });
    }

    #[test]
    fn what_feedback_disproves_is_left_out() {
        let mut f = Followed::default();
        let deliver = |f: &mut Followed, from: i64, lose: bool| {
            for tenth in 0..=10 {
                let now = Timestamp::from_millis(from * 1_000 + tenth * 100);
                let arrival = (!lose).then(|| RemoteTimestamp::from_millis(5));
                // 1 Mbit/s.
                let size = DataSize::from_bytes(12_500);
                let (departure, ecn) = (now, Ecn::NotEct);
                let one = PacketResult { sequence: 1, departure, arrival, size, ecn, probe: 0, was_lost: false };
                f.on_packets(&[one], now);
            }
        };
        let entries = [entry(50, 200), entry(50, 10)];
        let hear = |f: &mut Followed, serial, now| {
            let Verdict::Taken { is_contradicted } = f.on_vector(&vector(serial, 0, &entries), 2, now) else {
                panic!()
            };
            (is_contradicted, f.segments().len())
        };
        assert_eq!(hear(&mut f, 1, NOW), (false, 2), "nothing is known");
        deliver(&mut f, 100, false);
        assert_eq!(hear(&mut f, 2, Timestamp::from_secs(101)), (true, 1));
        assert_eq!(hear(&mut f, 3, Timestamp::from_secs(104)), (false, 2), "it is too long ago");
        deliver(&mut f, 105, true);
        assert_eq!(hear(&mut f, 4, Timestamp::from_secs(106)), (false, 2), "packets were lost");
        // 800 kbit/s by blocks, of which the first begins the measurement.
        for second in 107_i64..110 {
            let sent = DataSize::from_bytes(100_000 * (second as u64 - 106));
            f.on_block(sent, 0.0, Timestamp::from_secs(second));
        }
        assert_eq!(hear(&mut f, 5, Timestamp::from_secs(109)), (true, 1));
    }
}
