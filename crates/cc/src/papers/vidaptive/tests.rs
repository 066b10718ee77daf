use super::headroom::Headroom;
use super::*;
use crate::controller::Controller;
use crate::cue::QueueState;
use crate::testing::link::{Link, Reno, assert_between, mean, run_with};
use crate::testing::{Kbps, metric};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

const CALL: Kbps = Kbps { floor: 50, start: 1_000, ceiling: 20_000 };
const LINK: Link = Link { feedback: 10, is_exact: true, one_way: 20, capacity: |_| 4_000, ..Link::DEFAULT };

#[test]
fn alpha_moves_by_a_quarter_to_what_the_90th_percentile_allows() {
    let (config, at) = (Config::default(), Timestamp::from_millis);
    let mut h = Headroom::new(Timestamp::ZERO);
    // Service times of 20 to 60 ms at half of the rate: 40 to 120 ms at all of it. The 90th percentile is 112 ms.
    for k in 0..11 {
        h.on_frame(TimeDelta::from_millis(20 + 4 * k), 2e6, 1e6, at(500));
    }
    h.update(&config, at(999));
    assert_eq!(h.alpha(), 1.0);
    h.update(&config, at(1_000));
    let wanted = 1.0 + 0.25 * (33.0 / 112.0 - 1.0);
    assert!((h.alpha() - wanted).abs() < 1e-9, "{} {wanted}", h.alpha());
    // Frames older than the window are forgotten; without any alpha is one.
    h.update(&config, at(2_000));
    assert!((h.alpha() - (wanted + 0.25 * (1.0 - wanted))).abs() < 1e-9, "{}", h.alpha());
}

#[test]
fn alone_the_link_is_full_and_frames_leave_in_time() {
    let mut c: Vidaptive = CALL.sender(&[]);
    let seconds = run_with(&mut c, &LINK, 60, &mut Reno::default());
    assert_between("use, padding included", mean(&seconds[10..], |s| s.received) / 4_000.0, 0.85, 1.0);
    assert_between("media over capacity", mean(&seconds[10..], |s| s.target) / 4_000.0, 0.5, 1.1);
    assert!(seconds[20..].iter().any(|s| s.padded > 0), "it pads");
    assert_between("wait for the pacer, ms", mean(&seconds[10..], |s| s.waiting), 0.0, 33.0);
}

#[test]
fn a_source_that_makes_half_leaves_the_rest_to_padding() {
    let mut c: Vidaptive = CALL.sender(&[]);
    let seconds = run_with(&mut c, &Link { encoder: |_| 0.5, ..LINK }, 60, &mut Reno::default());
    assert_between("use, padding included", mean(&seconds[10..], |s| s.received) / 4_000.0, 0.7, 1.0);
    assert!(mean(&seconds[10..], |s| f64::from(s.padded)) > 50.0, "{}", mean(&seconds[10..], |s| f64::from(s.padded)));
}

#[test]
fn an_old_queue_pauses_the_encoder_and_its_padding() {
    let mut c: Vidaptive = CALL.sender(&[]);
    let kilobyte = DataSize::from_bytes(1_000);
    let queue = |ms, age| QueueState {
        now: Timestamp::from_millis(ms),
        added: kilobyte,
        queued: kilobyte,
        oldest_age: TimeDelta::from_millis(age),
    };
    c.on_queue(&queue(0, 0));
    c.on_queue(&queue(20, 5));
    assert_eq!(metric(&c, "is_paused"), 0.0);
    assert!(c.target().padding_rate > DataRate::ZERO);
    // Padding ends 8.25 ms before the next frame.
    assert_eq!(c.poll_timeout().map(|t| t.0), Some(Timestamp::from_micros(31_750)));
    c.on_timeout(Timestamp::from_micros(31_750));
    assert_eq!((c.target().padding_rate, c.poll_timeout()), (DataRate::ZERO, None));
    c.on_queue(&queue(40, 40));
    assert_eq!(c.target().media_rate, DataRate::from_kbps(50));
    assert_eq!(c.target().padding_rate, DataRate::ZERO);
    c.on_queue(&queue(60, 10));
    assert!(c.target().media_rate > DataRate::from_kbps(500));
}
