//! The choice of encodings: a down-link's target is allocated to the audio and video of all other members as a sender's is to its streams
//! ([`weir_session::allocation`]); the encodings of a member are those of a simulcast, each of which costs what it has above the one below.
//! Members whose video is on come first, then the one whose video is about to be on, then those whose lowest encoding costs least: one that
//! does not fit never holds off another that would.

use super::Encoding;
use crate::sdp::MAX_ENCODINGS;
use weir_session::allocation::{Demand, Hysteresis, MediaKind, Next, Share, share_out};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Share of its measured rate that a member's highest encoding may have, which varies with key frames. Above the margin of
/// [`Hysteresis`], so that this is asked for in full. Chosen here.
const ROOM: f64 = 1.3;
/// The lack after which an encoding is forwarded no more, in the time that it takes to send it. Half of a sender's: an encoding of others cannot be made smaller in a dip, and
/// waits in the queue.
const CARRY: TimeDelta = TimeDelta::from_millis(250);
/// Time for which an encoding must have fitted. Half of a sender's: the target of a room's member changes with each who comes and goes, and
/// one picture is wanted soon. Chosen here.
const HOLD: TimeDelta = TimeDelta::from_secs(1);
/// Rate of audio that is not measured yet: Opus as browsers begin with it, and its headers.
const AUDIO: DataRate = DataRate::from_kbps(50);

/// The allocation to a member's streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    video: [Share; MAX_ENCODINGS],
    /// The highest encoding that has room, in the order of the member's encodings.
    pub(super) wanted: Option<usize>,
    /// The rate of its video.
    pub(super) rate: DataRate,
}

impl Shares {
    /// A member that has just come: its lowest encoding is on at once if it fits, others after a while.
    pub(super) const fn new() -> Self {
        let video = [Share::new(), Share::off(), Share::off()];
        Self { video, wanted: None, rate: DataRate::ZERO }
    }
    /// Its place in the order of members, of which the least is the first.
    fn precedence(&self) -> u8 {
        match self.video[0] {
            share if share.is_on => 0,
            share if share.is_waiting() => 1,
            _ => 2,
        }
    }
}

/// Encodings that a member sends now.
pub(super) struct Sends {
    /// Its rate of audio, if it sends any.
    pub(super) audio: Option<DataRate>,
    pub(super) encodings: Vec<Encoding>,
}

/// The encodings that are sent, from the lowest up: by size where all have one, as they were offered otherwise.
fn ascending(encodings: &[Encoding]) -> Vec<usize> {
    let mut sent: Vec<usize> =
        (0..encodings.len().min(MAX_ENCODINGS)).filter(|&n| encodings[n].rate_bps > 0.0).collect();
    if sent.iter().all(|&n| encodings[n].size.is_some()) {
        sent.sort_by_key(|&n| encodings[n].size.map(|(w, h)| u32::from(w) * u32::from(h)));
    }
    sent
}

/// Allocates a target; returns the target at which more would be sent.
pub(super) fn allocate<'a>(
    target: DataRate,
    members: impl Iterator<Item = (&'a Sends, &'a mut Shares)>,
    now: Timestamp,
) -> Next {
    let (mut demands, mut shares, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let mut audio = DataRate::ZERO;
    let mut members: Vec<_> = members.map(|(sends, own)| (sends, ascending(&sends.encodings), own)).collect();
    members.sort_by_key(|(sends, sent, own)| match own.precedence() {
        2 => (2, sent.first().map_or(u64::MAX, |&n| sends.encodings[n].rate_bps as u64)),
        precedence => (precedence, 0),
    });
    for (group, (sends, sent, own)) in (0..).zip(members) {
        if let Some(rate) = sends.audio {
            audio += if rate == DataRate::ZERO { AUDIO } else { rate };
        }
        let mut below = 0.0;
        for (rank, &n) in sent.iter().enumerate() {
            let rate = sends.encodings[n].rate_bps;
            // One that costs less than that below it is worth nothing.
            let more = DataRate::from_bps_f64((rate - below).max(1.0));
            below = f64::max(below, rate);
            let most = if rank + 1 == sent.len() { more.as_bps_f64() * ROOM } else { more.as_bps_f64() };
            let most = DataRate::from_bps_f64(most);
            demands.push(Demand { least: more, most, simulcast: Some(group), ..Demand::default() });
            shares.push(own.video[rank]);
        }
        all.push((sent, own));
    }
    // The audio of all is one stream, since it is forwarded whatever the target is: the first of a call is always on. Were they several, those
    // that a low target has no room for would each wait for the time that streams wait which come back, one after the other, and video for all.
    if audio > DataRate::ZERO {
        demands.insert(0, Demand { least: audio, most: audio, media: MediaKind::Audio, ..Demand::default() });
        shares.insert(0, Share::new());
    }
    let hysteresis = Hysteresis { first_video_soon: true, carry: CARRY, hold: HOLD, ..Hysteresis::default() };
    let mut next = share_out(target, &demands, &hysteresis, &mut shares, now);
    // More than all of them together is not needed: to hold the target that there is would be more, where it is high.
    let most = demands.iter().fold(DataRate::ZERO, |sum, d| sum + d.most);
    next.needed = next.needed.map(|needed| needed.min(most));
    let mut shares = shares.into_iter().skip(usize::from(audio > DataRate::ZERO));
    for (sent, own) in all {
        (own.wanted, own.rate) = (None, DataRate::ZERO);
        for (rank, &n) in sent.iter().enumerate() {
            let Some(share) = shares.next() else { break };
            own.video[rank] = share;
            own.rate += share.rate;
            if share.is_on {
                own.wanted = Some(n);
            }
        }
        // An encoding that comes back later waits as a new one does.
        for share in own.video.iter_mut().skip(sent.len().max(1)) {
            *share = Share::off();
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(k: u64) -> DataRate {
        DataRate::from_kbps(k)
    }
    fn camera(rates: &[u32]) -> Sends {
        let encodings = rates.iter().map(|&k| Encoding { rate_bps: f64::from(k) * 1e3, size: None }).collect();
        Sends { audio: Some(kbps(50)), encodings }
    }

    /// Returns the encodings wanted of each at this target, after this many seconds and half of one more.
    fn wanted(sends: &[Sends], shares: &mut [Shares], target: u64, second: i64) -> (Vec<Option<usize>>, Option<u64>) {
        allocate(kbps(target), sends.iter().zip(&mut *shares), Timestamp::from_secs(second));
        let now = Timestamp::from_millis(second * 1_000 + 500);
        let next = allocate(kbps(target), sends.iter().zip(&mut *shares), now);
        (shares.iter().map(|s| s.wanted).collect(), next.needed.map(|n| n.as_bps() / 1_000))
    }

    #[test]
    fn encodings_are_those_that_the_target_has_room_for() {
        let sends = [camera(&[100, 300, 900]), camera(&[100, 300, 900])];
        let mut shares = [Shares::new(); 2];
        // Audio of both and 200 of video; then with the margin of a fifth, after a second of it.
        assert_eq!(wanted(&sends, &mut shares, 2_000, 0).0, [Some(0); 2]);
        assert_eq!(wanted(&sends, &mut shares, 2_000, 1).0, [Some(1); 2]);
        assert_eq!(wanted(&sends, &mut shares, 2_000, 2).0, [Some(1); 2]);
        // Not more padding than all of them would be.
        let mut new = [Shares::new(); 2];
        assert_eq!(wanted(&sends, &mut new, 9_000, 0).1, Some(2 * (300 + 780 + 50)));
        // 1,080 each and 100 of audio: the highest has to stay for a second, and has then room down to 900.
        let (now, needed) = wanted(&sends, &mut shares, 2_300, 3);
        assert_eq!((now, needed), (vec![Some(1); 2], Some(2_260)));
        assert_eq!(wanted(&sends, &mut shares, 2_300, 4), (vec![Some(2); 2], None));
        assert_eq!(wanted(&sends, &mut shares, 1_910, 5).0, [Some(2); 2]);
        // Down soon, also to nothing: audio goes on.
        assert_eq!(wanted(&sends, &mut shares, 1_300, 6).0, [Some(1); 2]);
        assert_eq!(wanted(&sends, &mut shares, 350, 7).0, [Some(0); 2]);
        assert_eq!(wanted(&sends, &mut shares, 250, 8).0, [Some(0), None]);
        assert_eq!(wanted(&sends, &mut shares, 120, 9).0, [None; 2]);
    }

    /// A target as a member's controller had it behind a link that fell from 6 Mbit/s to 350 kbit/s: kbit/s each half second.
    const FALLEN: [u64; 22] =
        [285, 284, 281, 283, 92, 92, 92, 92, 92, 92, 185, 185, 185, 298, 202, 203, 211, 209, 221, 217, 226, 224];

    #[test]
    fn who_has_room_for_one_lowest_encoding_gets_it_within_two_seconds_also_again_and_again() {
        let mut sends: Vec<Sends> = (0..9).map(|_| camera(&[20, 60, 180])).collect();
        sends.iter_mut().for_each(|s| s.audio = Some(kbps(15)));
        let mut shares = [Shares::new(); 9];
        for (turn, half) in (0..10).flat_map(|turn| (0..FALLEN.len()).map(move |half| (turn, half))) {
            let now = Timestamp::from_millis(((turn * FALLEN.len() + half) * 500) as i64);
            allocate(kbps(FALLEN[half]), sends.iter().zip(&mut shares), now);
            let videos = shares.iter().filter(|s| s.wanted.is_some()).count();
            // 135 of audio, and 20: there is room from the 11th on. One that is on may lack it for a while.
            let room = FALLEN[half] >= 155 || FALLEN[half.saturating_sub(1)] >= 155;
            assert!(room || videos == 0, "{turn} {half}: {videos}");
            assert!(half < 14 || videos > 0, "{turn} {half}");
        }
    }

    #[test]
    fn a_member_whose_lowest_encoding_does_not_fit_holds_off_no_other() {
        let sends = [camera(&[400]), camera(&[100]), camera(&[90])];
        let mut shares = [Shares::new(); 3];
        assert_eq!(wanted(&sends, &mut shares, 5_000, 0).0, [Some(0); 3]);
        // The first of those that were on does not fit; a second later what costs least is there, and stays.
        assert_eq!(wanted(&sends, &mut shares, 300, 1).0, [None; 3]);
        assert_eq!(wanted(&sends, &mut shares, 300, 2).0, [None; 3]);
        assert_eq!(wanted(&sends, &mut shares, 300, 3).0, [None, None, Some(0)]);
        assert_eq!(wanted(&sends, &mut shares, 420, 4).0, [None, None, Some(0)]);
        assert_eq!(wanted(&sends, &mut shares, 420, 5).0, [None, Some(0), Some(0)]);
        assert_eq!(wanted(&sends, &mut shares, 345, 6).0, [None, Some(0), Some(0)]);
    }

    #[test]
    fn an_encoding_that_is_not_sent_is_not_wanted_and_sizes_tell_the_order() {
        let mut sends = [camera(&[900, 100, 300])];
        for (encoding, side) in sends[0].encodings.iter_mut().zip([4, 1, 2]) {
            encoding.size = Some((side * 160, side * 90));
        }
        let mut shares = [Shares::new()];
        let mut after = |sends: &[Sends], second| wanted(sends, &mut shares, 5_000, second).0[0];
        assert_eq!([0, 1, 2].map(|s| after(&sends, s)), [Some(1), Some(2), Some(0)]);
        sends[0].encodings[0].rate_bps = 0.0;
        assert_eq!(after(&sends, 3), Some(2));
        sends[0].encodings[0].rate_bps = 900e3;
        assert_eq!([4, 5].map(|s| after(&sends, s)), [Some(2), Some(0)]);
    }
}
