//! Messages of estimators in the binary form: an error, or a message that is written and read as the same.
#![no_main]

use weir_estimator::binary::{read_answer, read_turn, write_answer, write_turn};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(turn) = read_turn(data) {
        let mut once = Vec::new();
        write_turn(turn.turn, &turn.events, &mut once);
        let again = read_turn(&once).expect("what is written can be read");
        let mut twice = Vec::new();
        write_turn(again.turn, &again.events, &mut twice);
        // Bytes: numbers that are none are not equal to themselves.
        assert_eq!(once, twice);
    }
    if let Ok(answer) = read_answer(data) {
        let mut written = Vec::new();
        write_answer(&answer, &mut written);
        assert_eq!(read_answer(&written).as_ref(), Ok(&answer));
    }
});
