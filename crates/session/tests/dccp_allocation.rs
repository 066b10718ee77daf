//! A media packet over DCCP allocates no memory.

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
        // Occasional growth, for instance of a ring that has never been as full, is not per packet.
        assert!(counted.count_total <= 20, "CCID {ccid}: {} allocations", counted.count_total);
    }
}
