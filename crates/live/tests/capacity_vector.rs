//! A call over the loopback device whose receiving end announces the capacity that it expects.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_cc::cue::ForecastSegment;
use weir_live::call::{CallConfig, CallObserver, Party, PartyMedia, loopback};
use weir_live::sdp::{Direction, Feedback};
use weir_live::signal::{Listener, Signalling, Trust};
use weir_media::{EncoderConfig, VideoCodec};
use weir_session::{CapacityVectorCounters, Endpoint};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Announces 300 kbit/s for a minute, one second after the begin.
#[derive(Default)]
struct Announces(Option<Timestamp>, bool);

impl CallObserver for Announces {
    fn on_look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let begin = *self.0.get_or_insert(now);
        if !self.1 && now - begin >= TimeDelta::from_secs(1) {
            let (median, to) = (DataRate::from_kbps(300), TimeDelta::from_secs(60));
            let segment = ForecastSegment { from: TimeDelta::ZERO, to, low: median, median, confidence: 1.0 };
            self.1 = true;
            endpoint.rtcp().announce_capacity(&[segment], to, now);
        }
    }
}

/// The vectors that the sending end has received, and its least target since then.
#[derive(Default)]
struct Hears(CapacityVectorCounters, Option<DataRate>);

impl CallObserver for Hears {
    fn on_look(&mut self, _: Timestamp, endpoint: &mut Endpoint) {
        self.0 = endpoint.stats().counters().vectors;
        if let Some(target) = endpoint.target().filter(|_| self.0.accepted > 0) {
            self.1 = Some(self.1.map_or(target.media_rate, |least| least.min(target.media_rate)));
        }
    }
}

#[test]
fn the_sending_end_follows_what_the_receiving_end_expects() {
    for (capacity_vectors, controller) in [(true, "sluice+map"), (false, "sluice+map")] {
        let limits = weir_cc::Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(1_500) };
        let config = CallConfig {
            controller: controller.into(),
            capacity_vectors,
            limits,
            start_rate: DataRate::from_kbps(800),
            ..CallConfig::default()
        };
        let (mut hears, mut announces) = (Hears::default(), Announces::default());
        let (stop, time) = (AtomicBool::new(false), Some(TimeDelta::from_secs(3)));
        let ends = (&mut hears, &mut announces);
        loopback(&config, &Registry::builtin(), time, &stop, ends).expect("it runs");
        let (accepted, least) = (hears.0.accepted, hears.1.map(|rate| rate.as_bps() / 1_000));
        if capacity_vectors {
            // 0.95 of it.
            assert!(accepted == 1 && least.is_some_and(|kbps| (280..=286).contains(&kbps)), "{accepted} {least:?}");
        } else {
            assert_eq!((hears.0, least), (CapacityVectorCounters::default(), None));
        }
    }
}

/// Whether a call between two parties has capacity vectors, if each end wants them and the call has keys or not.
fn agreed(connecting: bool, listening: bool) -> [bool; 2] {
    let party = |direction, capacity_vectors| {
        let media = vec![PartyMedia::video(vec![VideoCodec::H264], EncoderConfig::live(320, 240), direction)];
        Party::new(CallConfig { capacity_vectors, ..CallConfig::default() }, media, Trust::default())
    };
    let mut listener = Listener::bind(&Signalling::Tcp("127.0.0.1:0".into()), None, &Trust::default()).expect("a port");
    let by = Signalling::Tcp(listener.local_addr().expect("an address").to_string());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        let other = scope.spawn(move || {
            party(Direction::Receive, listening).listen(&mut listener, stop, &mut |_| {}).expect("an offer").agreement
        });
        let own = party(Direction::Send, connecting).connect(&by, stop).expect("an answer").agreement;
        [own, other.join().expect("no panic")].map(|a| a.has(Feedback::CapacityVector))
    })
}

#[test]
fn vectors_are_agreed_on_by_both_ends_or_not_at_all() {
    assert_eq!(agreed(true, true), [true, true]);
    for (connecting, listening) in [(true, false), (false, true), (false, false)] {
        assert_eq!(agreed(connecting, listening), [false, false], "{connecting} {listening}");
    }
}
