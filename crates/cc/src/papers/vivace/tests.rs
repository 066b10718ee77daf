use super::*;
use crate::testing::link::{Link, Reno, mean, run_with};
use crate::testing::{Kbps, metric};

const CALL: Kbps = Kbps { floor: 50, start: 300, ceiling: 10_000 };
const LINK: Link = Link { feedback: 20, is_exact: true, one_way: 25, capacity: |_| 2_000, ..Link::DEFAULT };

#[test]
fn alone_it_uses_most_of_the_link_with_little_queue() {
    let mut c: Vivace = CALL.sender(&[]);
    let seconds = run_with(&mut c, &LINK, 120, &mut Reno::default());
    let (rate, queue) = (mean(&seconds[40..], |s| s.received), mean(&seconds[40..], |s| s.queue));
    assert!(rate > 1_400.0 && queue < 80.0, "{rate:.0} kbit/s, {queue:.0} ms");
    assert_eq!(metric(&c, "mode"), 1.0);
}

#[test]
fn five_percent_of_loss_are_tolerated_and_a_quarter_is_not() {
    let at = |loss: f64| {
        let mut c: Vivace = CALL.sender(&[]);
        let seconds = run_with(&mut c, &Link { loss, ..LINK }, 120, &mut Reno::default());
        mean(&seconds[60..], |s| s.received)
    };
    let (few, many) = (at(0.02), at(0.25));
    assert!(few > 1_000.0 && many < 0.5 * few, "{few:.0} kbit/s at 2 %, {many:.0} at 25 %");
}

#[test]
fn a_link_that_falls_is_followed() {
    let mut c: Vivace = CALL.sender(&[]);
    let link = Link { capacity: |ms| if ms < 60_000 { 4_000 } else { 1_000 }, ..LINK };
    let seconds = run_with(&mut c, &link, 120, &mut Reno::default());
    let (before, after) = (mean(&seconds[30..60], |s| s.received), mean(&seconds[90..], |s| s.target));
    assert!(before > 2_500.0 && after < 1_100.0 && after > 400.0, "{before:.0}, {after:.0} kbit/s");
}
