//! A call that grows while it runs: it begins with video on one path, and gets a second path and an audio stream.
//!
//! `cargo run --release -p weir-session --example growing_call`
//!
//! Each path is a link of 800 kbit/s, with 20 and 40 ms each way. Here datagrams go through a queue, elsewhere each path
//! is a socket of its own.

use std::collections::VecDeque;
use std::error::Error;
use weir_cc::{Limits, Registry, Setup};
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    CallPlan, Control, Datagram, EndConfig, EndName, IncomingConfig, Kind, OutgoingConfig, StreamIdentity,
};
use weir_units::{DataRate, Ecn, PathId, TimeDelta, Timestamp};

const RATE: DataRate = DataRate::from_kbps(800);
const DELAYS: [TimeDelta; 2] = [TimeDelta::from_millis(20), TimeDelta::from_millis(40)];

/// A controller for one path. Each path has its own.
fn control(now: Timestamp) -> Result<Control, Box<dyn Error>> {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(2) };
    let setup = Setup { limits, start_rate: DataRate::from_kbps(300), now, seed: 1, params: vec![] };
    Ok(Control::new(&Registry::builtin(), "gcc", &setup)?)
}

/// One direction of a path.
#[derive(Default)]
struct Link {
    free_at: Timestamp,
    under_way: VecDeque<(Timestamp, Vec<u8>, u32)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut now = Timestamp::ZERO;
    // Only a call that is made for several paths can get a second one.
    let config = EndConfig { ssrc: 1, remote_ssrc: 2, multipath: true, ..EndConfig::default() };
    let video = PerfectCodec::frames(TimeDelta::from_millis(33), now).into();
    let name = EndName { cname: "receiver".into(), seed: 2 };
    let (mut sender, mut receiver) = CallPlan::of_source(control(now)?, video, config, name).into_ends(now)?;

    let mut links: [[Link; 2]; 2] = Default::default();
    let (mut second, mut audio, mut sent) = (0, None, [[0u64; 2]; 2]);
    while second < 20 {
        for (from, end) in [&mut sender, &mut receiver].into_iter().enumerate() {
            let mut bytes = Vec::new();
            while let Some(t) = end.poll_transmit(now, &mut bytes) {
                let link = &mut links[from][t.path.index()];
                link.free_at = link.free_at.max(now) + RATE.time_for(t.size).unwrap_or(TimeDelta::ZERO);
                let arrival = link.free_at + DELAYS[t.path.index()];
                link.under_way.push_back((arrival, std::mem::take(&mut bytes), t.payload));
                if let Some((stream, Kind::Media)) = t.rtp {
                    sent[t.path.index()][usize::from(Some(stream) == audio)] += t.size.as_bytes();
                }
            }
        }
        let timers = [&mut sender, &mut receiver].into_iter().filter_map(|e| e.poll_timeout(now));
        let arrivals = links.iter().flatten().filter_map(|l| l.under_way.front().map(|p| p.0));
        now = timers.chain(arrivals).min().unwrap_or(now).max(now);
        for (from, path) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let under_way = &mut links[from][path].under_way;
            while under_way.front().is_some_and(|p| p.0 <= now)
                && let Some((_, bytes, payload)) = under_way.pop_front()
            {
                let to = if from == 0 { &mut receiver } else { &mut sender };
                let path = PathId::new(path as u8);
                to.handle_datagram(now, &Datagram { path, payload, ..Datagram::new(&bytes, Ecn::NotEct) });
            }
        }
        sender.handle_timeout(now);
        receiver.handle_timeout(now);

        if now >= Timestamp::from_secs(second + 1) {
            second += 1;
            let kbps = sent.map(|path| path.map(|bytes| bytes * 8 / 1_000));
            println!(
                "{second:2} s: kbit/s of [video, audio] on the first path {:?}, on the second {:?}",
                kbps[0], kbps[1]
            );
            sent = Default::default();
            match second {
                5 => {
                    // Both ends add it: the receiver first, so that it answers the sender's first check of the path.
                    let (sending, receiving) = control(now)?.into_directions();
                    let path = receiver.add_path(receiving.into(), now)?;
                    assert_eq!(path, sender.add_path(sending.into(), now)?);
                }
                10 => {
                    // Here too: the receiver refuses packets of sources that it does not know.
                    let identity =
                        StreamIdentity { ssrc: 11, payload_type: 111, clock_rate: 48_000, ..Default::default() };
                    let (least, most) = (DataRate::from_kbps(16), DataRate::from_kbps(48));
                    let demand = Demand { least, most, media: MediaKind::Audio, ..Demand::default() };
                    let source = PerfectCodec::frames(TimeDelta::from_millis(20), now).into();
                    receiver.add_incoming(IncomingConfig::new(identity, MediaKind::Audio), now)?;
                    audio = Some(sender.add_outgoing(OutgoingConfig::new(identity, source, demand), now)?);
                }
                _ => {}
            }
        }
    }
    let counters = receiver.stats().counters();
    println!("datagrams that the receiver refused: {}", counters.malformed + counters.unknown_source);
    Ok(())
}
