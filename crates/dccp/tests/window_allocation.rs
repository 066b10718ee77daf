//! No allocation per packet in steady state: CCIDs 2 and 5 and the receiver's Ack Vector.

mod half_connection;

use half_connection::window::Drive;

#[test]
fn nothing_is_allocated_in_steady_state() {
    for ccid in [2, 5] {
        for (window, lose_every) in [(10, u64::MAX), (1_000, u64::MAX), (1_000, 331)] {
            let mut drive = Drive::new(ccid, window, lose_every);
            (0..2_000).for_each(|_| {
                drive.round();
            });
            let mut sent = 0;
            let counted = allocation_counter::measure(|| (0..2_000).for_each(|_| sent += drive.round()));
            assert_eq!(counted.count_total, 0, "CCID {ccid}, {window} packets, one of {lose_every} lost");
            let full = lose_every == u64::MAX;
            assert_eq!(drive.window() == f64::from(window), full, "{}", drive.window());
            assert!(if full { sent == 2_000 * u64::from(window) } else { (20_000..200_000).contains(&sent) }, "{sent}");
        }
    }
}

#[test]
fn the_counter_counts() {
    assert!(allocation_counter::measure(|| drop(std::hint::black_box(vec![1u8]))).count_total > 0);
}

#[test]
fn an_idle_half_connection_is_small() {
    for ccid in [2, 5] {
        // Created and used a little, as when a connection opens.
        let mut drive = None;
        let counted = allocation_counter::measure(|| {
            let mut d = Drive::new(ccid, 2_000, u64::MAX);
            (0..4).for_each(|_| {
                d.round();
            });
            drive = Some(d);
        });
        let kept = counted.bytes_current;
        // Includes the drive's own buffers.
        assert!((200..4_096).contains(&kept), "CCID {ccid} keeps {kept} bytes");
    }
}
