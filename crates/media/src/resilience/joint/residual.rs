//! Frames that a code leaves: the chance that a frame is not whole by its deadline, on a path with the losses of two states (Gilbert, 1960).

/// A path that loses every packet in one state and none in the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct TwoStates {
    loss: f64,
    /// The chance that the packet after one that arrived is lost, and that the one after a lost packet is lost too.
    begins: f64,
    stays: f64,
}

/// Packets of frames, and repair packets of all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Of the frame that is judged.
    pub frame: usize,
    /// Of it and the frames behind it by which it can still be recovered.
    pub media: usize,
    pub repairs: usize,
}

impl TwoStates {
    /// A path of this share of losses, in bursts of this mean length.
    pub(super) fn new(loss: f64, burst: f64) -> Self {
        let loss = loss.clamp(0.0, 1.0);
        let stays = (1.0 - 1.0 / burst.max(1.0)).max(if burst <= 1.0 { loss } else { 0.0 });
        // In equilibrium as many bursts begin as end.
        let begins = if loss >= 1.0 { 1.0 } else { (loss * (1.0 - stays) / (1.0 - loss)).min(1.0) };
        Self { loss, begins, stays }
    }

    /// The chance that so many packets in succession all arrive.
    pub(super) fn none_lost(&self, packets: usize) -> f64 {
        (1..packets).fold(1.0 - self.loss, |chance, _| chance * (1.0 - self.begins))
    }

    /// The chance that more than `most` of `packets` are lost, after a packet that arrived or at any time.
    fn more_lost(&self, packets: usize, most: usize, follows_arrival: bool) -> f64 {
        if packets == 0 {
            return 0.0;
        }
        let first = if follows_arrival { self.begins } else { self.loss };
        // By losses so far, with the last packet arrived or lost; more than `most` are together.
        let mut arrived = vec![0.0; most + 2];
        let mut lost = vec![0.0; most + 2];
        (arrived[0], lost[1]) = (1.0 - first, first);
        for _ in 1..packets {
            for count in (0..most + 2).rev() {
                let (a, l) = (arrived[count], lost[count]);
                arrived[count] = a * (1.0 - self.begins) + l * (1.0 - self.stays);
                let more = a * self.begins + l * self.stays;
                lost[count] = 0.0;
                lost[(count + 1).min(most + 1)] += more;
            }
        }
        arrived[most + 1] + lost[most + 1]
    }

    /// The chance that a packet of the frame is lost, and that more are lost in its window than it has repair packets. Packets and
    /// repair packets are as one block, of which any part that is large enough restores the rest.
    pub(super) fn missed(&self, w: Window) -> f64 {
        if w.repairs == 0 {
            return 1.0 - self.none_lost(w.frame);
        }
        let all = w.media + w.repairs;
        let any = self.more_lost(all, w.repairs, false);
        let others = self.none_lost(w.frame) * self.more_lost(all - w.frame, w.repairs, true);
        (any - others).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_hand() {
        // Losses by chance: of three packets more than one is lost, 3 x 0.01 x 0.9 + 0.001.
        let p = TwoStates::new(0.1, 1.0);
        assert!((p.more_lost(3, 1, false) - 0.028).abs() < 1e-12);
        assert!((p.none_lost(3) - 0.729).abs() < 1e-12);
        // One packet and one copy: both are lost.
        assert!((p.missed(Window { frame: 1, media: 1, repairs: 1 }) - 0.01).abs() < 1e-12);
        // Two packets and one repair packet: those of the chain of Hairpin, 0.018 + 0.01.
        assert!((p.missed(Window { frame: 2, media: 2, repairs: 1 }) - 0.028).abs() < 1e-12);
        assert!((p.missed(Window { frame: 2, media: 2, repairs: 0 }) - 0.19).abs() < 1e-12);
        // Of a window of two frames, the losses of the other one alone do not count: 0.028 less 0.9 x (0.1 x 0.1).
        assert!((p.missed(Window { frame: 1, media: 2, repairs: 1 }) - 0.019).abs() < 1e-12);
    }

    #[test]
    fn bursts_have_their_share_and_their_length() {
        // 10 % in bursts of 5: a burst begins after one packet in 45 that arrived.
        let p = TwoStates::new(0.1, 5.0);
        assert!((p.stays - 0.8).abs() < 1e-12 && (p.begins - 0.1 * 0.2 / 0.9).abs() < 1e-12);
        let q = TwoStates::new(0.1, 1.0);
        let w = Window { frame: 4, media: 8, repairs: 2 };
        // Fewer frames are hit, and more of those are not recovered.
        assert!(p.none_lost(4) > q.none_lost(4) && p.missed(w) > q.missed(w));
        for (loss, burst) in [(0.0, 1.0), (1.0, 1.0), (0.5, 1e9), (1.0, 50.0), (0.9, 1.0)] {
            let missed = TwoStates::new(loss, burst).missed(w);
            assert!((0.0..=1.0).contains(&missed), "{loss} {burst}: {missed}");
        }
        assert_eq!(TwoStates::new(0.0, 1.0).missed(w), 0.0);
        assert_eq!(TwoStates::new(1.0, 1.0).missed(w), 1.0);
    }
}
