//! A media packet over DCCP takes no memory of its own.

mod dccp_steady;

use dccp_steady::Call;

#[test]
fn nothing_is_allocated_per_packet() {
    for ccid in [2, 3] {
        let mut call = Call::new(Some(ccid));
        assert!(call.deliver(20_000) >= 20_000);
        let counted = allocation_counter::measure(|| {
            call.deliver(20_000);
        });
        // What grows now and then, such as a ring that has not been as full before, is no packet's.
        assert!(counted.count_total <= 20, "CCID {ccid}: {} allocations", counted.count_total);
    }
}
