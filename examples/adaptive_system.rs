//! A call controlled by an application: preferences, codec parameters, FEC and session parameters, changed while it
//! runs.
//!
//! `cargo run --release -p weir-session --example adaptive_system`
//!
//! Two ends communicate over 40 ms each way; every 50th media packet is lost. Here datagrams go through a queue,
//! elsewhere through a socket.

use std::collections::VecDeque;
use std::error::Error;
use weir_cc::{Limits, Registry, Setup};
use weir_fec::Scheme;
use weir_session::system::{AdaptiveSystem, Preferences, SystemConfig};
use weir_session::{Datagram, EndConfig};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};

const DELAY: TimeDelta = TimeDelta::from_millis(40);

fn end(sends: bool) -> Result<AdaptiveSystem, Box<dyn Error>> {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(2) };
    let (ssrc, remote_ssrc) = if sends { (1, 2) } else { (2, 1) };
    let config = SystemConfig {
        endpoint: EndConfig { ssrc, remote_ssrc, synchronised_clocks: true, ..EndConfig::default() },
        controller: "gcc".into(),
        setup: Setup { limits, start_rate: DataRate::from_kbps(500), now: Timestamp::ZERO, seed: 1, params: vec![] },
        send: if sends {
            Some(Preferences::from_pairs([("codec", "statistical"), ("frame_rate", "25")])?)
        } else {
            None
        },
        receive: (!sends).then_some(TimeDelta::from_millis(200)),
        circuit_breaker: Some(Default::default()),
    };
    Ok(AdaptiveSystem::new(config, &Registry::builtin())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut ends = [end(true)?, end(false)?];
    let mut under_way = [VecDeque::new(), VecDeque::new()];
    let (mut now, mut media, mut second) = (Timestamp::ZERO, 0u32, 0);
    while second < 20 {
        for (i, end) in ends.iter_mut().enumerate() {
            let mut bytes = Vec::new();
            while let Some(t) = end.endpoint_mut().poll_transmit(now, &mut bytes) {
                media += u32::from(t.is_rtp() && !t.is_repair());
                if !t.is_rtp() || t.is_repair() || media % 50 != 0 {
                    under_way[i].push_back((now + DELAY, std::mem::take(&mut bytes), t.payload));
                }
            }
        }
        let timers = ends.iter_mut().filter_map(|e| e.endpoint_mut().poll_timeout(now));
        let arrivals = under_way.iter().filter_map(|q| q.front().map(|p| p.0));
        now = timers.chain(arrivals).min().unwrap_or(now).max(now);
        for (i, queue) in under_way.iter_mut().enumerate() {
            while queue.front().is_some_and(|p| p.0 <= now)
                && let Some((_, bytes, payload)) = queue.pop_front()
            {
                let datagram = Datagram { payload, ..Datagram::new(&bytes, Ecn::NotEct) };
                ends[1 - i].endpoint_mut().handle_datagram(now, &datagram);
            }
        }
        ends.iter_mut().for_each(|e| e.endpoint_mut().handle_timeout(now));

        if now >= Timestamp::from_secs(second + 1) {
            second += 1;
            let [sender, receiver] = &mut ends;
            match second {
                5 => sender.set_fec_scheme(Some(Scheme::Parity { interval: 10 }.into()))?,
                10 => sender.set_param("frame_rate", 15.0.into(), now)?,
                15 => receiver.set_session_param("rtcp_interval_ms", "200")?,
                _ => {}
            }
            // A wrong name is an error, and the call continues.
            if let Err(e) = sender.set_param("quantiser", 30.0.into(), now).map_err(|e| e.to_string())
                && second == 1
            {
                println!("{e}");
            }
            let (given, asked) = sender.bit_rate(now)?;
            let recovery = receiver.endpoint().stats().recovery_stats();
            println!(
                "{second:2} s: asked {asked}, given {given}, {} lost, {} recovered",
                recovery.lost, recovery.recovered
            );
        }
    }
    Ok(())
}
