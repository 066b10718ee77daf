//! Controllers beside two ends of str0m.

#[path = "../examples/str0m/call.rs"]
mod call;

use call::run;
use weir_adapters::Settings;
use weir_adapters::str0m::Beside;

#[test]
fn controllers_use_the_link_and_follow_its_fall() {
    for name in ["gcc", "scream", "sluice"] {
        let [before, fallen] = run(name, &[(30, 1_500), (20, 500)])[..] else { panic!("two phases") };
        assert!((0.6..1.01).contains(&before.used) && before.dropped < 100, "{name}: {before:?}");
        assert!((0.4..1.01).contains(&fallen.used) && fallen.target_kbps < 700.0, "{name}: {fallen:?}");
        // The queue holds 960 ms at that rate.
        assert!((25.0..700.0).contains(&fallen.delay_ms), "{name}: {fallen:?}");
    }
}

#[test]
fn controllers_that_need_more_are_refused() {
    assert!(Beside::new("gcc-remb", &Settings::default()).is_err());
}
