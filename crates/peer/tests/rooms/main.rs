//! Rooms of members that are no browsers: a simulcast of made-up frames from each, forwarded by layers, with one member behind a slow link.

#[path = "../calls/strangers.rs"]
#[expect(dead_code, reason = "shared with the test of calls")]
mod strangers;

mod member;

use member::{Heard, Member, RATES};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use strangers::{memory, post};
use weir_cc::{Limits, Registry};
use weir_media::VideoCodec;
use weir_media::clip::Character;
use weir_path::{Capacity, Limit, LinkConfig, Schedule, Step};
use weir_peer::call::{LinkPlan, Settings, Snapshot};
use weir_peer::caller::{Caller, RoomOffer};
use weir_peer::server::{ClipConfig, RunningServer, ServerConfig, serve};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// The slow member's link: for all at first, then for audio and a part of the lowest encodings.
const WIDE: DataRate = DataRate::from_mbps(6);
const NARROW: DataRate = DataRate::from_kbps(350);
const NARROW_FROM: TimeDelta = TimeDelta::from_secs(10);
const MEMBERS: usize = 10;
/// Above what the audio of nine and one lowest encoding need.
const ROOM_FOR_ONE: f64 = 185e3;
/// Time for all to get the highest encoding, before the link is narrow.
const PATIENCE: Duration = Duration::from_secs(9);

async fn service(limits: weir_peer::server::Limits) -> RunningServer {
    let at = |at, rate| Step { at, rate };
    let steps = vec![at(TimeDelta::ZERO, WIDE), at(NARROW_FROM, NARROW)];
    let capacity = Capacity::Schedule(Schedule::new(steps, None).expect("a schedule"));
    let plain = LinkConfig::constant(DataRate::from_mbps(20), TimeDelta::from_millis(20));
    let limit = Limit::Size(DataSize::from_bytes(60_000));
    let link = LinkPlan {
        forward: vec![LinkConfig { capacity, limit, ..plain.clone() }],
        reverse: vec![plain],
        seed: 3,
        network: None,
    };
    let config = ServerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        media: None,
        token: None,
        settings: Settings {
            controller: "gcc".into(),
            limits: Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_mbps(5) },
        },
        start_rate: DataRate::from_kbps(1_000),
        codec: VideoCodec::H264,
        clip: ClipConfig { character: Character::TalkingHead, size: (160, 90), rate: "20".parse().expect("a rate") },
        link: Some(link),
        limits,
    };
    serve(config, Arc::new(Registry::builtin())).await.expect("started")
}

fn offer(encodings: usize) -> RoomOffer {
    let rids = ["l", "m", "h"][..encodings].iter().map(ToString::to_string).collect();
    RoomOffer { rids, ssrc: (0x1000, 0x2000), places: MEMBERS - 1 }
}

/// A member joins; it is not behind the link unless wanted.
async fn join(service: &RunningServer, zero: Instant, number: u8, by_link: bool) -> Member {
    join_as(service, zero, number, &format!("test?link={}", if by_link { "on" } else { "off" })).await
}

async fn join_as(service: &RunningServer, zero: Instant, number: u8, room: &str) -> Member {
    let mut caller = Caller::new(zero).expect("a caller");
    let path = format!("/rooms/{room}");
    let (status, answer) = post(service, &path, &service.token, caller.room_offer(&offer(3)).as_bytes()).await;
    assert_eq!(status, 201, "{answer}");
    caller.accept(&answer).expect("an answer");
    Member::new(caller, &answer, number)
}

/// Runs members on a thread until told to stop; returns what each has heard.
fn run(mut members: Vec<Member>, zero: Instant, stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<Vec<Heard>> {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let now = Timestamp::ZERO + TimeDelta::from_nanos(zero.elapsed().as_nanos() as i64);
            members.iter_mut().for_each(|m| m.turn(now));
            std::thread::sleep(Duration::from_millis(1));
        }
        members.into_iter().map(Member::finish).collect()
    })
}

/// The encodings that a member gets, by place.
fn encodings(call: &Snapshot) -> Vec<Option<usize>> {
    call.room.iter().flat_map(|r| &r.places).map(|p| p.encoding).collect()
}

/// The mean of the encodings that members get, of three; 0 where there is no video.
fn mean(calls: &[Snapshot]) -> f64 {
    let all: Vec<_> = calls.iter().flat_map(encodings).map(|e| e.map_or(0.0, |n| n as f64 + 1.0)).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_member_gets_lower_layers_and_the_others_keep_theirs() {
    let service = service(weir_peer::server::Limits::default()).await;
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let zero = Instant::now();
    let mut members = Vec::new();
    for number in 0..MEMBERS as u8 {
        members.push(join(&service, zero, number, number == 0).await);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let running = run(members, zero, &stop);
    let calls = || service.calls().into_iter().map(|(_, call)| call).collect::<Vec<_>>();
    // The highest encoding everywhere; on a machine with much else to do some wait for it longer than this.
    let is_top = |call: &Snapshot| encodings(call) == vec![Some(2); MEMBERS - 1];
    let mut before = calls();
    while !before.iter().all(is_top) && zero.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(50)).await;
        before = calls();
    }
    println!("after {:.1?}: {:?}", zero.elapsed(), before.iter().map(encodings).collect::<Vec<_>>());
    assert!(mean(&before[1..]) > 1.9 && encodings(&before[0]).iter().any(|e| *e >= Some(1)), "{:#?}", before[0].room);
    let early = memory();
    let room = service.calls()[0].1.room.clone().expect("in a room");
    assert_eq!((room.members, room.encodings.len()), (MEMBERS, 3));

    // Then the link of the first has not room enough for all of the lowest.
    let narrow = Duration::from_secs_f64(NARROW_FROM.as_secs_f64() + 7.0);
    let mut begin = None;
    // Times without any video: the longest, and the longest with room for one lowest encoding.
    let (mut without, mut despite) = ((zero.elapsed(), Duration::ZERO), (zero.elapsed(), Duration::ZERO));
    while zero.elapsed() < narrow + Duration::from_secs(4) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let (now, calls) = (zero.elapsed(), calls());
        let slow = &calls[0];
        let has_video = encodings(slow).iter().any(Option::is_some);
        let has_room = slow.samples.last().and_then(|s| s.target_bps) >= Some(ROOM_FOR_ONE);
        for (time, counts) in [(&mut without, !has_video), (&mut despite, !has_video && has_room)] {
            time.0 = if counts { time.0 } else { now };
            time.1 = time.1.max(now - time.0);
        }
        if begin.is_none() && now >= narrow {
            begin = Some((now, calls));
        }
    }
    let (from, earlier) = begin.expect("looked at meanwhile");
    println!("slow member: without video for {:.1?}, {:.1?} of it while there was room", without.1, despite.1);
    // On a machine with much else to do the sender's key frames come later.
    assert!(despite.1 < Duration::from_secs(4), "{:?}", despite.1);
    let cpu = |calls: &[Snapshot]| calls.iter().filter_map(|c| c.totals.cpu_ms).sum::<u64>();
    let (time, after) = (zero.elapsed() - from, calls());
    let late = memory();
    stop.store(true, Ordering::Relaxed);
    let heard = running.join().expect("members went on to the end");
    let streams = MEMBERS * (MEMBERS - 1) * 2;
    let load = (cpu(&after) - cpu(&earlier)) as f64 / time.as_millis() as f64;
    println!(
        "slow member: {:?}, target {:?} bit/s; CPU {:.2} of a core, {:.2} % a stream of {streams}; memory {early} then {late} bytes",
        encodings(&after[0]),
        after[0].samples.last().and_then(|s| s.target_bps),
        load,
        100.0 * load / streams as f64,
    );
    let slow = &after[0];
    let target = slow.samples.last().and_then(|s| s.target_bps).expect("a target");
    assert!(target < 2.0 * NARROW.as_bps_f64(), "{target}");
    let seen = encodings(slow);
    assert!(seen.iter().all(|e| e.is_none_or(|n| n == 0)) && seen.contains(&None), "{:#?}", slow.room);
    // Audio goes on at each place.
    for (a, b) in earlier[0].room.iter().zip(&after[0].room) {
        let passed = a.places.iter().zip(&b.places).map(|(a, b)| b.audio_packets - a.audio_packets);
        assert!(passed.clone().all(|n| n > 30), "{:?}", passed.collect::<Vec<_>>());
    }
    let (was, is) = (mean(&before[1..]), mean(&after[1..]));
    assert!(is > was - 0.2, "{was} {is}");
    for (number, call) in after.iter().enumerate().skip(1) {
        let lost = call.samples.iter().rev().take(40).filter_map(|s| s.loss).fold(0.0, f64::max);
        assert!(lost < 0.2, "{number}: {lost}");
    }
    for (number, heard) in heard.iter().enumerate() {
        // A decoder's input begins with key frames, and a gap within an encoding shows in its numbers.
        assert_eq!(heard.broken, 0, "{number}: {heard:?}");
        assert!(number == 0 || heard.gaps == 0, "{number}: {heard:?}");
        assert!(heard.audio > 500 && heard.frames > 500, "{number}: {heard:?}");
    }
    println!("the slow member: {} changes of encodings, {} frames behind a loss", heard[0].changes, heard[0].gaps);
    assert!(heard[0].changes > 9, "{:?}", heard[0]);
    // RATES are low, so that the test is: a stream's memory does not grow with time.
    assert!(late < early + 40_000_000, "{early} {late}, {RATES:?}");
    let report = service.stop().await;
    assert_eq!(report.len(), MEMBERS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_key_frames_without_end_gets_few_and_the_others_their_pictures() {
    let service = service(weir_peer::server::Limits::default()).await;
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let zero = Instant::now();
    let mut members = Vec::new();
    for number in 0..3 {
        members.push(join(&service, zero, number, false).await);
    }
    members[2].nags = true;
    let stop = Arc::new(AtomicBool::new(false));
    let running = run(members, zero, &stop);
    tokio::time::sleep(Duration::from_secs(4)).await;
    let calls: Vec<Snapshot> = service.calls().into_iter().map(|(_, call)| call).collect();
    let seconds = zero.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let heard = running.join().expect("members went on to the end");
    println!("{:?} requests of the one who nags", heard[2].nagged);
    assert!(heard[2].nagged > 100);
    for call in &calls[..2] {
        let requested = call.room.as_ref().expect("in a room").key_frames_requested;
        // Two a second of each encoding at most, and the first of each.
        assert!((1..=(6.0 * seconds) as u64 + 3).contains(&requested), "{requested} in {seconds} s");
    }
    assert!(heard[..2].iter().all(|h| h.broken == 0 && h.frames > 30), "{heard:?}");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rooms_and_members_are_bounded_and_need_the_token() {
    let limits = weir_peer::server::Limits { rooms: 2, members: 3, ..weir_peer::server::Limits::default() };
    let service = service(limits).await;
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let zero = Instant::now();
    let offer = Caller::new(zero).expect("a caller").room_offer(&offer(3));
    let join = async |path: &str| post(&service, path, &service.token, offer.as_bytes()).await;
    assert_eq!(post(&service, "/rooms/a", "", offer.as_bytes()).await.0, 401);
    assert_eq!(join("/rooms/a%20b").await.0, 422);
    assert_eq!(join(&format!("/rooms/{}", "a".repeat(41))).await.0, 422);
    assert_eq!(join("/rooms/a?link=maybe").await.0, 422);
    assert_eq!(join("/rooms/a?controller=nobody").await.0, 422);
    for _ in 0..3 {
        let (status, answer) = join("/rooms/a").await;
        assert_eq!(status, 201);
        // The camera's encodings, and as many places as there can be others.
        assert!(answer.contains("a=simulcast:recv l;m;h\r\n") && answer.contains("a=rid:h recv\r\n"), "{answer}");
        assert_eq!(weir_peer::caller::streams(&answer).len(), 4);
    }
    let (status, answer) = join("/rooms/a").await;
    assert!(status == 503 && answer.contains("the room has 3 members"), "{answer}");
    let (status, answer) = join("/rooms/b?codec=h264").await;
    assert!(status == 422 && answer.contains("m=video"), "{answer}");
    assert_eq!(join("/rooms/b").await.0, 201);
    let (status, answer) = join("/rooms/b?codec=h264").await;
    assert!(status == 422 && answer.contains("this room has VP8"), "{answer}");
    let (status, answer) = join("/rooms/c").await;
    assert!(status == 503 && answer.contains("as many rooms"), "{answer}");
    // Calls outside rooms have their places still.
    let chromium = include_str!("../../src/sdp/chromium.sdp");
    assert_eq!(post(&service, "/whep", &service.token, chromium.as_bytes()).await.0, 201);
    // Rooms end with their last member.
    let ids: Vec<String> = service.calls().into_iter().map(|(id, _)| id).collect();
    for id in ids {
        strangers::end(&service, &format!("/calls/{id}")).await;
    }
    for _ in 0..100 {
        if join("/rooms/c").await.0 == 201 {
            service.stop().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no place for another room");
}

/// Waits up to so many seconds for what the calls show.
async fn within(seconds: u64, service: &RunningServer, what: &str, is_so: impl Fn(&[Snapshot]) -> bool) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds) {
        let calls: Vec<Snapshot> = service.calls().into_iter().map(|(_, call)| call).collect();
        if is_so(&calls) {
            return begun.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: not within {seconds} s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_have_names_and_one_that_vanishes_leaves_within_seconds() {
    let service = service(weir_peer::server::Limits::default()).await;
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let zero = Instant::now();
    let mut members = Vec::new();
    for (number, name) in ["Anna", "Anna", "%20%C5%81ukasz%20"].into_iter().enumerate() {
        let path = format!("test?link=off&name={name}");
        members.push(join_as(&service, zero, number as u8, &path).await);
    }
    for (name, status) in [("%20", 422), (&"a".repeat(41), 422), ("a%0Ab", 422)] {
        let caller = Caller::new(zero).expect("a caller");
        let offer = caller.room_offer(&offer(1));
        let path = format!("/rooms/test?name={name}");
        let (got, problem) = post(&service, &path, &service.token, offer.as_bytes()).await;
        assert!(got == status && problem.contains("a member's name has 1 to 40 characters"), "{name}: {got} {problem}");
    }
    let vanishing = members.pop().expect("three");
    let (stop, gone) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (running, leaving) = (run(members, zero, &stop), run(vec![vanishing], zero, &gone));
    let names = |call: &Snapshot| {
        let mut all: Vec<String> = call.room.iter().flat_map(|r| &r.places).map(|p| p.member.clone()).collect();
        all.sort();
        all
    };
    within(10, &service, "all see each other", |calls| {
        names(&calls[0]) == ["Anna (2)", "\u{141}ukasz"] && names(&calls[1]) == ["Anna", "\u{141}ukasz"]
    })
    .await;
    // It says no goodbye.
    gone.store(true, Ordering::Relaxed);
    assert_eq!(leaving.join().expect("no panic").len(), 1);
    let is_two =
        |calls: &[Snapshot]| names(&calls[0]) == ["Anna (2)"] && calls[0].room.as_ref().is_some_and(|r| r.members == 2);
    let took = within(10, &service, "the others no longer see it", is_two).await;
    assert!(took > Duration::from_secs(5), "{took:?}: browsers may be silent for so long");
    // Those that are heard stay.
    tokio::time::sleep(Duration::from_secs(2)).await;
    within(1, &service, "the two see each other", is_two).await;
    stop.store(true, Ordering::Relaxed);
    assert_eq!(running.join().expect("no panic").len(), 2);
    service.stop().await;
}
