//! The limits of each scenario of `scenarios/pathologies/`, with the controllers that have their own and why.
//!
//! A limit holds for every controller; an exception states what a controller's specification, or its measured behaviour, makes of
//! the case instead. The numbers are choices, beside what was measured when each fault was mended.

use super::limit::{Bounds, Case, Limit};
use super::quantity::Quantity::{self, *};

/// Greatest goodput over a link of 2 Mbit/s, in kbit/s.
const WHOLE_LINK: f64 = 2_010.0;

/// All cases, in the order of their names.
pub fn cases() -> Vec<Case> {
    vec![
        at_the_ceiling(),
        browser_stalls(),
        case("clock-drift", as_without("last two minutes", 0.9, 70.0)),
        case("clock-step", ["before", "ahead", "back"].map(|w| as_without(w, 0.9, 40.0)).concat()),
        case("coarse-clock", as_without("last minute", 0.9, 30.0)),
        copies(),
        first_picture(),
        layers(),
        longer_path(),
        mute(),
        mute_and_playout(),
        one_in_a_hundred_lost(),
        reordering(),
        slow_link_key_frames(),
    ]
}

const fn case(name: &'static str, limits: Vec<Limit>) -> Case {
    Case { name, also: &[], limits }
}

/// A window's goodput is at least this share of the undisturbed run's, and the queue no longer by more than `more_ms`.
fn as_without(window: &'static str, least: f64, more_ms: f64) -> Vec<Limit> {
    vec![
        Limit::share(WindowGoodput(window), Bounds::least(least)),
        Limit::of(WindowGoodput(window), Bounds::most(WHOLE_LINK)),
        Limit::more(WindowQueue(window), more_ms),
    ]
}

/// The limits with an exception in the one of this quantity beside the undisturbed run.
fn but(
    mut limits: Vec<Limit>,
    quantity: Quantity,
    controller: &'static str,
    bounds: Bounds,
    reason: &'static str,
) -> Vec<Limit> {
    let beside = |l: &&mut Limit| l.quantity == quantity && l.against != super::limit::Against::Itself;
    if let Some(at) = limits.iter_mut().find(beside) {
        *at = at.clone().but(controller, bounds, reason);
    }
    limits
}

/// 20 ms of path, a frame's own time, and two frame intervals.
fn at_the_ceiling() -> Case {
    case(
        "at-the-ceiling",
        vec![
            Limit::of(FrameDelay, Bounds::within(20.0, 70.0)),
            Limit::of(FrameDelayP95, Bounds::within(20.0, 150.0)),
            Limit::of(FramesLate, Bounds::most(0.0)),
            Limit::of(FramesPlayed, Bounds::least(3_500.0)),
            Limit::of(Goodput, Bounds::within(1_850.0, 2_100.0)),
        ],
    )
}

/// The undisturbed run is that to Weir's own receiver.
fn browser_stalls() -> Case {
    const CHROMIUM: &[&str] = &["chromium"];
    case(
        "browser-stalls",
        vec![
            Limit::of(WindowGoodput("last minute"), Bounds::within(1_400.0, 2_600.0)).only(CHROMIUM),
            Limit::share(WindowGoodput("last minute"), Bounds::least(0.85)).only(CHROMIUM),
            Limit::of(WindowQueue("last minute"), Bounds::within(10.0, 80.0)).only(CHROMIUM),
        ],
    )
}

/// A packet counts once, however often it arrives.
fn copies() -> Case {
    let once = [
        Sent,
        Goodput,
        Received,
        TailGoodput,
        Utilisation,
        PacketsReceived,
        WindowGoodput("last minute"),
        SecondsOfGoodput,
    ];
    let once = once.map(|quantity| Limit::share(quantity, Bounds::within(0.99, 1.01)));
    let others = [
        Limit::more(Loss, 0.1),
        Limit::of(PacketsReceivedOfSent, Bounds::most(1.0)),
        Limit::of(GoodputOfSent, Bounds::most(1.0)),
    ];
    case("copies", once.into_iter().chain(others).collect())
}

/// A picture in the first second, and then nearly all.
fn first_picture() -> Case {
    let limits =
        vec![Limit::of(PicturesShown, Bounds::within(585.0, 600.0)), Limit::of(Frozen, Bounds::within(0.0, 1.0))];
    Case { also: &["gcc-scream2"], ..case("first-picture", limits) }
}

/// A picture always; the second encoding needs 2.1 Mbit/s, and three quarters of these links.
fn layers() -> Case {
    const SLOW_START: &str = "SCReAM's target falls to a half in the first second and then rises by a fifth a second at most: the lowest \
                              encoding begins after 4 to 5 s, the second one after 12 s, and on 3.4 Mbit/s after a fall as slowly again.";
    let second = Limit::of(On("camera:1"), Bounds::within(0.9, 1.0)).only(&["2.8 Mbit/s", "3.4 Mbit/s", "4 Mbit/s"]);
    case(
        "layers",
        vec![
            Limit::of(On("camera:0"), Bounds::least(0.999)).but("scream", Bounds::least(0.95), SLOW_START),
            second.but("scream", Bounds::within(0.7, 1.0), SLOW_START),
            Limit::of(Padding, Bounds::within(0.0, 0.075)).but(
                "bbr-rtc",
                Bounds::within(0.0, 0.1),
                "BBR pads up to its pacing rate in its start and in one phase of each cycle: with 9 % of what it sends on the link of 4 Mbit/s, \
                 where the source has no encoding between 2.45 and 3.65 Mbit/s.",
            ),
            Limit::of(Switches, Bounds::most(8.0)),
        ],
    )
}

fn longer_path() -> Case {
    let after = but(
        as_without("after", 0.9, 70.0),
        WindowQueue("after"),
        "bbr-rtc",
        Bounds::most(220.0),
        "BBR's window is of twice the bandwidth-delay product, and follows the path.",
    );
    case("longer-path", [as_without("before", 0.99, 1.0), after].concat())
}

fn mute() -> Case {
    const AGAIN: Bounds = Bounds::within(0.35, 1.2);
    let first = Limit::share(WindowGoodput("first second"), Bounds::within(0.8, 1.2))
        .but("bbr-rtc", AGAIN, "BBR begins again on an empty path.")
        .but("tfrc", AGAIN, "TFRC begins again below the old rate (RFC 5348, section 4.3).");
    let frames = [Limit::of(FramesLate, Bounds::most(0.0)), Limit::of(FramesPlayed, Bounds::least(2_350.0))];
    case("mute", [vec![first], as_without("after", 0.95, 40.0), frames.to_vec()].concat())
}

/// 40 s of 30 frames and of sound; the first 10 s of silence are concealed. Adaptive playout has the delay to save.
fn mute_and_playout() -> Case {
    case(
        "mute-and-playout",
        vec![
            Limit::of(Silence("microphone"), Bounds::within(19.5, 21.0)),
            Limit::of(Stall("camera"), Bounds::within(19.5, 21.0)),
            Limit::of(StreamPlayed("camera"), Bounds::within(1_150.0, 1_200.0)).but(
                "bbr-rtc",
                Bounds::within(1_120.0, 1_200.0),
                "BBR falls to three quarters of the bandwidth and below to drain what its start and its probes have queued; frames that \
                 wait for that at the sender are late for the deadline of 400 ms, 3 to 6 % of them.",
            ),
            Limit::of(Concealed("microphone"), Bounds::within(0.19, 0.23)),
        ],
    )
}

fn one_in_a_hundred_lost() -> Case {
    const WINDOW: &str = "A round trip with a loss costs SCReAM a fifth of its window.";
    let share = Limit::share(WindowGoodput("last minute"), Bounds::within(0.9, 1.01))
        .but("scream", Bounds::within(0.03, 0.1), WINDOW)
        .but("scream2", Bounds::within(0.3, 0.7), WINDOW)
        .but("tfrc", Bounds::within(0.2, 0.6), "TFRC's equation has the loss rate in it.");
    case("one-in-a-hundred-lost", vec![share])
}

fn reordering() -> Case {
    const RATE: Quantity = WindowGoodput("last minute");
    const OVERTAKEN: Bounds = Bounds::least(0.68);
    let limits = as_without("last minute", 0.95, 60.0);
    let limits = but(
        limits,
        RATE,
        "tfrc",
        OVERTAKEN,
        "TFRC counts a packet overtaken by three as lost (RFC 5348, section 5.1).",
    );
    let limits =
        but(limits, RATE, "nada-receiver", OVERTAKEN, "NADA's receiver half counts packets overtaken as lost.");
    let limits = but(
        limits,
        WindowQueue("last minute"),
        "nada",
        Bounds::most(100.0),
        "NADA counts delays above QTH for less while packets are reported lost (RFC 8698, section 4.2), here those overtaken by seven: \
         88 to 196 ms over three seeds.",
    );
    case("reordering", limits)
}

/// Without limits of key frames: 89 to 95 in a minute, and 61 to 64 s frozen.
fn slow_link_key_frames() -> Case {
    const OVERRUN: &str = "NADA's rate stands still at a queuing delay of XREF RMAX / rate, 120 ms here, and with a loss remembered it discounts \
                           delays above QTH, 50 ms: it overruns this link each 5 to 6 s until packets are lost, whatever is sent.";
    const BBR: &str = "BBR's window is of four packets of 1,460 bytes at least, 470 ms of this link, whose path and queue hold 360 ms: 12 % of \
                       the packets are lost.";
    const TFRC: &str = "Loss is all that TFRC reacts to: it keeps the queue full, and 5 % of the packets are lost.";
    case(
        "slow-link-key-frames",
        vec![
            Limit::of(KeyFrames, Bounds::within(0.5, 4.0))
                .but("nada", Bounds::within(0.5, 27.0), OVERRUN)
                .but("nada-receiver", Bounds::within(0.5, 30.0), OVERRUN)
                .but("bbr-rtc", Bounds::within(0.5, 45.0), BBR)
                .but("tfrc", Bounds::within(0.5, 43.0), TFRC),
            Limit::of(Frozen, Bounds::within(0.0, 4.0))
                .but("nada", Bounds::within(0.0, 18.0), OVERRUN)
                .but("nada-receiver", Bounds::within(0.0, 20.0), OVERRUN)
                .but("bbr-rtc", Bounds::within(0.0, 19.0), BBR)
                .but("tfrc", Bounds::within(0.0, 14.0), TFRC),
        ],
    )
}
