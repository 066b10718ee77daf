//! No allocation per packet in steady state: CCIDs 3, 4 and that for video.

mod half_connection;

use half_connection::rate::Drive;

#[test]
fn nothing_is_allocated_in_steady_state() {
    for (ccid, packets) in [(3, 5_000..500_000), (4, 9_000..11_000), (248, 5_000..500_000)] {
        for lose_every in [100, 3_001] {
            let mut drive = Drive::new(ccid, lose_every);
            // Until nine loss intervals are reported, the drive's buffers grow.
            (0..40_000).for_each(|_| {
                drive.step();
            });
            let mut sent = 0;
            // 100 s.
            let counted = allocation_counter::measure(|| (0..8_000).for_each(|_| sent += drive.step()));
            assert_eq!(counted.count_total, 0, "CCID {ccid}, one of {lose_every} lost");
            assert!(packets.contains(&sent), "CCID {ccid}: {sent}");
            let p = drive.metric("loss_event_rate") * lose_every as f64;
            assert!((0.8..=1.05).contains(&p), "CCID {ccid}: {p}");
        }
    }
}

#[test]
fn an_idle_half_connection_is_small() {
    for ccid in [3, 4, 248] {
        let mut drive = None;
        let counted = allocation_counter::measure(|| {
            let mut d = Drive::new(ccid, u64::MAX);
            (0..8).for_each(|_| {
                d.step();
            });
            drive = Some(d);
        });
        let kept = counted.bytes_current;
        // Includes the drive's own buffers.
        assert!((1_000..8_192).contains(&kept), "CCID {ccid} keeps {kept} bytes");
    }
}
