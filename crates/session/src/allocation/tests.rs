use super::*;
use proptest::prelude::*;

fn kbps(k: u64) -> DataRate {
    DataRate::from_kbps(k)
}
fn hysteresis() -> Hysteresis {
    Hysteresis { hold: TimeDelta::from_secs(1), ..Hysteresis::default() }
}
fn audio(least: u64, most: u64) -> Demand {
    Demand { least: kbps(least), most: kbps(most), media: MediaKind::Audio, ..Demand::default() }
}
fn video(least: u64, most: u64, priority: Priority) -> Demand {
    Demand { least: kbps(least), most: kbps(most), priority, ..Demand::default() }
}
fn encoding(least: u64, most: u64) -> Demand {
    Demand { simulcast: Some(1), ..video(least, most, Priority::Low) }
}

/// The rates in kbit/s of a first allocation.
fn rates(target: u64, demands: &[Demand]) -> Vec<u64> {
    let mut shares = vec![Share::new(); demands.len()];
    share_out(kbps(target), demands, &hysteresis(), &mut shares, Timestamp::ZERO);
    shares.iter().map(|s| s.rate.as_bps() / 1_000).collect()
}

#[test]
fn audio_is_full_before_video_rises() {
    let streams = [video(100, 2_000, Priority::High), audio(16, 64)];
    assert_eq!(rates(10, &streams), [0, 10]);
    assert_eq!(rates(100, &streams), [0, 64]);
    assert_eq!(rates(120, &streams), [100, 20]);
    assert_eq!(rates(164, &streams), [100, 64]);
    assert_eq!(rates(1_064, &streams), [1_000, 64]);
    assert_eq!(rates(9_000, &streams), [2_000, 64]);
}

#[test]
fn weights_double_with_each_priority() {
    let all = [Priority::VeryLow, Priority::Low, Priority::Medium, Priority::High];
    let streams = all.map(|p| video(0, 10_000, p));
    assert_eq!(rates(1_500, &streams), [100, 200, 400, 800]);
    // The highest reaches its greatest rate at 500: 1,000 remain for weights of 7.
    let mut streams = streams;
    streams[3].most = kbps(500);
    assert_eq!(rates(1_200, &streams), [100, 200, 400, 500]);
}

#[test]
fn encodings_go_on_from_the_lowest_up_and_leave_what_they_cannot_use() {
    let camera = [encoding(50, 150), encoding(200, 500), encoding(700, 1_500)];
    assert_eq!(rates(100, &camera), [100, 0, 0]);
    assert_eq!(rates(349, &camera), [150, 0, 0]);
    assert_eq!(rates(350, &camera), [150, 200, 0]);
    assert_eq!(rates(1_349, &camera), [150, 500, 0]);
    assert_eq!(rates(1_350, &camera), [150, 500, 700]);
    let with_screen = [camera[0], camera[1], camera[2], video(100, 3_000, Priority::Low)];
    // 850 above the least rates of both, half for each: 475 for the camera.
    assert_eq!(rates(1_000, &with_screen), [150, 325, 0, 525]);
    // 275 for the camera, which can use 150 of it.
    assert_eq!(rates(600, &with_screen), [150, 0, 0, 450]);
}

#[test]
fn a_disabled_encoding_resumes_with_a_margin_and_after_a_while() {
    let demands = [encoding(50, 150), encoding(200, 500)];
    let mut shares = [Share::new(), Share::off()];
    let h = hysteresis();
    let at = |target: u64, ms: i64, shares: &mut [Share]| {
        let again = share_out(kbps(target), &demands, &h, shares, Timestamp::from_millis(ms));
        (shares[1].is_on, again.again.map(|t| t.as_millis()))
    };
    // It needs 350, and 420 with the margin.
    assert_eq!(at(419, 0, &mut shares), (false, None));
    assert_eq!(at(420, 100, &mut shares), (false, Some(1_100)));
    assert_eq!(at(410, 500, &mut shares), (false, None));
    // 100 ms that did not fit take off 300 of the 400 that did.
    assert_eq!(at(430, 600, &mut shares), (false, Some(1_500)));
    assert_eq!(at(500, 1_499, &mut shares), (false, Some(1_500)));
    assert_eq!(at(500, 1_500, &mut shares), (true, None));
    assert_eq!(at(350, 1_600, &mut shares), (true, None), "it stays while it fits");
    // 1 of its 200 kbit/s is missing, and then half of them: half a second's bits in a second.
    assert_eq!(at(349, 1_700, &mut shares), (true, Some(101_700)));
    assert_eq!(at(250, 1_800, &mut shares), (true, Some(2_799)));
    assert_eq!(at(250, 2_798, &mut shares), (true, Some(2_799)));
    assert_eq!(at(250, 2_800, &mut shares), (false, None));
}

#[test]
fn streams_that_fit_go_on_together_after_one_hold() {
    let demands = [video(100, 400, Priority::Low); 6];
    let mut shares = [Share::off(); 6];
    let mut at = |target: u64, ms: i64| {
        let next = share_out(kbps(target), &demands, &hysteresis(), &mut shares, Timestamp::from_millis(ms));
        (shares.iter().filter(|s| s.is_on).count(), next.again.map(|t| t.as_millis()))
    };
    // Four of them, 400 kbit/s, fit with a fifth to spare.
    assert_eq!(at(500, 0), (1, Some(1_000)));
    assert_eq!(at(500, 999), (1, Some(1_000)));
    assert_eq!(at(500, 1_000), (4, None));
    // The last begins to fit later than the one before it, and goes on after its own hold.
    assert_eq!(at(600, 2_000), (4, Some(3_000)));
    assert_eq!(at(720, 2_500), (4, Some(3_000)));
    assert_eq!(at(720, 3_000), (5, Some(3_500)));
    assert_eq!(at(720, 3_500), (6, None));
    // One that goes off takes those behind it with it.
    assert_eq!(at(250, 60_000).0, 6);
    assert_eq!(at(250, 90_000).0, 2);
}

#[test]
fn in_a_dip_an_encoding_has_what_is_left_and_a_surplus_makes_up_for_it() {
    let demands = [encoding(50, 150), encoding(200, 500)];
    let mut shares = [Share::new(); 2];
    let mut at = |target: u64, ms: i64| {
        share_out(kbps(target), &demands, &hysteresis(), &mut shares, Timestamp::from_millis(ms));
        shares.map(|s| (s.is_on, s.rate.as_bps() / 1_000))
    };
    // It is on from the beginning, and has proved itself after a second with 100 above its least rate.
    assert_eq!(at(450, 0), [(true, 150), (true, 300)]);
    for dip in 1..20 {
        assert_eq!(at(200, 2_000 * dip), [(true, 150), (true, 50)], "{dip}");
        assert_eq!(at(550, 2_000 * dip + 500), [(true, 150), (true, 400)], "{dip}");
    }
    // Without anything left it goes off after the time that it may be carried.
    assert_eq!(at(140, 50_000), [(true, 140), (true, 0)]);
    assert_eq!(at(140, 50_499), [(true, 140), (true, 0)]);
    assert_eq!(at(140, 50_500), [(true, 140), (false, 0)]);
}

#[test]
fn an_encoding_disabled_soon_again_waits_four_times_as_long() {
    let demands = [encoding(50, 150), encoding(200, 500)];
    let mut shares = [Share::new(), Share::off()];
    let mut waits = vec![];
    let mut now = Timestamp::ZERO;
    for _ in 0..6 {
        let begin = now;
        while !shares[1].is_on {
            share_out(kbps(600), &demands, &hysteresis(), &mut shares, now);
            now += TimeDelta::from_millis(100);
        }
        waits.push((now - begin).as_millis() / 1_000);
        for _ in 0..2 {
            now += TimeDelta::from_secs(1);
            share_out(kbps(200), &demands, &hysteresis(), &mut shares, now);
        }
        assert!(!shares[1].is_on);
    }
    assert_eq!(waits, [1, 4, 16, 64, 64, 64]);
}

#[test]
fn the_first_video_where_it_is_wanted_soon_needs_the_margin_of_its_own_rate_and_never_waits_longer_than_two_seconds() {
    let video = Demand { least: kbps(20), most: kbps(40), ..Demand::default() };
    let demands = [audio(130, 130), video, video];
    let mut shares = [Share::new(), Share::off(), Share::off()];
    let sooner = Hysteresis { first_video_soon: true, ..hysteresis() };
    let mut at = |target: u64, ms: i64| {
        let next = share_out(kbps(target), &demands, &sooner, &mut shares, Timestamp::from_millis(ms));
        (shares[1].is_on, shares[2].is_on, next.needed.map(|n| n.as_bps() / 1_000))
    };
    assert_eq!(at(153, 0), (false, false, Some(154)));
    assert_eq!(at(154, 100), (false, false, Some(154)));
    // The second needs a fifth more than all three together.
    assert_eq!(at(154, 1_100), (true, false, Some(204)));
    let mut waits = vec![];
    let mut now = 2_000;
    for _ in 0..5 {
        assert!(at(120, now).0 && !at(120, now + 500).0);
        now += 500;
        let begin = now;
        while !at(160, now).0 {
            now += 100;
        }
        waits.push((now - begin) / 1_000);
        now += 3_000;
    }
    assert_eq!(waits, [2; 5]);
    // The others still wait longer each time.
    let mut waits = vec![];
    for _ in 0..4 {
        let begin = now;
        while !at(250, now).1 {
            now += 100;
        }
        waits.push((now - begin) / 1_000);
        assert!(at(150, now + 1_000).1);
        now += 1_500;
        let after = at(150, now);
        assert_eq!((after.0, after.1), (true, false));
    }
    assert_eq!(waits, [1, 4, 16, 64]);
}

/// A target that rises above what the path carries, and falls below what the second encoding needs whenever the third has been tried.
#[test]
fn a_failed_trial_is_not_held_against_what_it_takes_along() {
    let demands = [encoding(50, 150), encoding(200, 500), encoding(700, 1_500)];
    let mut shares = [Share::new(), Share::off(), Share::off()];
    let (mut waits, mut tried_after) = (vec![], vec![]);
    let mut now = Timestamp::ZERO;
    let mut step = |shares: &mut [Share; 3], target, times| {
        for _ in 0..times {
            share_out(kbps(target), &demands, &hysteresis(), shares, now);
            now += TimeDelta::from_millis(100);
        }
        now
    };
    for _ in 0..4 {
        let begin = step(&mut shares, 2_000, 1);
        let mut at = begin;
        while !shares[1].is_on {
            at = step(&mut shares, 2_000, 1);
        }
        waits.push((at - begin).as_millis() / 1_000);
        while !shares[2].is_on {
            at = step(&mut shares, 2_000, 1);
        }
        tried_after.push((at - begin).as_millis() / 1_000);
        step(&mut shares, 2_000, 5);
        step(&mut shares, 200, 30);
        assert!(!shares[1].is_on && !shares[2].is_on);
    }
    // The second is back after a hold each time, and then the third waits four times as long as before.
    assert_eq!((waits, tried_after), (vec![1; 4], vec![2, 5, 17, 65]));
}

/// Number of times an encoding is switched in 100 s while the target swings between these every 500 ms, as GCC's does on back-off.
fn switches(high: u64, low: u64) -> u32 {
    let demands = [audio(16, 32), encoding(50, 150), encoding(200, 500)];
    let mut shares = [Share::new(); 3];
    let (mut switches, mut was_on) = (0, true);
    for n in 0..1_000i64 {
        let target = if n % 10 < 5 { high } else { low };
        share_out(kbps(target), &demands, &hysteresis(), &mut shares, Timestamp::from_millis(n * 100));
        switches += u32::from(shares[2].is_on != was_on);
        was_on = shares[2].is_on;
    }
    switches
}

#[test]
fn a_target_that_swings_does_not_make_an_encoding_flap() {
    // 382 are needed.
    assert_eq!([(400, 340), (420, 300), (450, 250)].map(|(high, low)| switches(high, low)), [1; 3]);
    // It fits on average.
    assert_eq!([(400, 370), (470, 340), (600, 350)].map(|(high, low)| switches(high, low)), [0; 3]);
}

fn demands() -> impl Strategy<Value = Vec<Demand>> {
    let one = (0u64..500, 0u64..3_000, 0usize..4, any::<bool>(), proptest::option::of(0u8..2));
    proptest::collection::vec(one, 1..8).prop_map(|all| {
        let priorities = [Priority::VeryLow, Priority::Low, Priority::Medium, Priority::High];
        let one = |(least, more, p, is_audio, simulcast): (u64, u64, usize, bool, Option<u8>)| {
            let media = if is_audio && simulcast.is_none() { MediaKind::Audio } else { MediaKind::Video };
            Demand { least: kbps(least), most: kbps(least + more), priority: priorities[p], media, simulcast }
        };
        all.into_iter().map(one).collect()
    })
}

/// The streams of a list, each by its lowest encoding.
fn lowest(demands: &[Demand]) -> Vec<usize> {
    let first = |i: usize| !demands[..i].iter().any(|d| d.simulcast.is_some() && d.simulcast == demands[i].simulcast);
    (0..demands.len()).filter(|&i| first(i)).collect()
}

proptest! {
    #[test]
    fn the_sum_is_never_above_the_target_nor_a_rate_outside_its_bounds(
        demands in demands(), targets in proptest::collection::vec(0u64..12_000, 1..30),
    ) {
        let mut shares = vec![Share::new(); demands.len()];
        for (n, target) in targets.into_iter().enumerate() {
            share_out(kbps(target), &demands, &hysteresis(), &mut shares, Timestamp::from_millis(n as i64 * 400));
            let sum: u64 = shares.iter().map(|s| s.rate.as_bps()).sum();
            prop_assert!(sum <= target * 1_000, "{sum} of {target}");
            for (s, d) in shares.iter().zip(&demands) {
                prop_assert!(s.rate <= d.most && (s.is_on || s.rate == DataRate::ZERO));
            }
        }
    }

    #[test]
    fn no_stream_that_is_on_goes_below_its_least_while_all_fit(
        demands in demands(), targets in proptest::collection::vec(0u64..12_000, 1..30),
    ) {
        let mut shares = vec![Share::new(); demands.len()];
        let least: u64 = lowest(&demands).iter().map(|&i| demands[i].least.as_bps()).sum();
        for (n, target) in targets.into_iter().enumerate() {
            let before = shares.clone();
            share_out(kbps(target), &demands, &hysteresis(), &mut shares, Timestamp::from_millis(n as i64 * 400));
            if target * 1_000 < least {
                continue;
            }
            for &i in &lowest(&demands) {
                prop_assert!(shares[i].is_on || !before[i].is_on, "{i} goes off although all fit");
                prop_assert!(!shares[i].is_on || shares[i].rate >= demands[i].least);
            }
        }
    }

    #[test]
    fn a_higher_target_gives_no_less_in_all_and_turns_nothing_off(
        demands in demands(), target in 0u64..12_000, more in 0u64..6_000,
    ) {
        let mut low = vec![Share::new(); demands.len()];
        let mut high = low.clone();
        share_out(kbps(target), &demands, &hysteresis(), &mut low, Timestamp::ZERO);
        share_out(kbps(target + more), &demands, &hysteresis(), &mut high, Timestamp::ZERO);
        let sum = |shares: &[Share]| shares.iter().map(|s| s.rate.as_bps()).sum::<u64>();
        // Rounding may cost each stream less than 1 bit/s.
        prop_assert!(sum(&high) + 64 >= sum(&low), "{} and {}", sum(&low), sum(&high));
        for &i in &lowest(&demands) {
            prop_assert!(high[i].is_on || !low[i].is_on);
        }
    }

    #[test]
    fn everything_goes_on_in_time_once_it_fits_with_the_margin(demands in demands(), start in 0u64..12_000) {
        let mut shares = vec![Share::new(); demands.len()];
        share_out(kbps(start), &demands, &hysteresis(), &mut shares, Timestamp::ZERO);
        let all: u64 = demands.iter().map(|d| d.most.as_bps() / 1_000).sum();
        // Weights may give a stream more than it can use until the others reach their greatest rates: far above the sum
        // all do.
        for n in 0..200 {
            share_out(kbps(all * 2 + 1_000), &demands, &hysteresis(), &mut shares, Timestamp::from_millis(n * 200));
        }
        for (s, d) in shares.iter().zip(&demands) {
            prop_assert_eq!((s.is_on, s.rate), (true, d.most));
        }
    }

    #[test]
    fn the_same_inputs_give_the_same_shares(demands in demands(), target in 0u64..12_000) {
        prop_assert_eq!(rates(target, &demands), rates(target, &demands));
    }
}
