use weir_units::TimeDelta;

weir_cc::tunables! {
    /// Configuration of CCID 2, both halves.
    pub struct Config {
        /// Maximum congestion window, in packets (own choice: 1 Gbit/s at 100 ms; the connection widens its Sequence
        /// Window with the packets sent per round trip, RFC 4340, section 7.5.2).
        max_window: u32 = 10_000, 4 => 100_000;
        /// NUMDUPACK: later packets received after which one is lost (RFC 4341, section 5: 3).
        num_dup_ack: u32 = 3, 1 => 100;
        /// Transmit timeout before the first round-trip time (RFC 6298, section 2.1: 1 s; RFC 2988, cited by RFC 4341,
        /// 3 s).
        initial_timeout: TimeDelta = 1_000.0, 10.0 => 60_000.0;
        /// Minimum transmit timeout (RFC 4341, section 5, rejects TCP's 1 s and names none; Linux has 200 ms, the time
        /// for which an acknowledgement may be delayed).
        min_timeout: TimeDelta = 200.0, 1.0 => 10_000.0;
        /// Maximum transmit timeout (RFC 2988, section 2.5: at least 60 s; Linux's DCCP has 64 s).
        max_timeout: TimeDelta = 64_000.0, 1_000.0 => 600_000.0;
        /// Maximum packets sent at once; 0 for no bound. RFC 4341, section 5, lets a sender pace what one
        /// acknowledgement releases; 10 is the initial burst allowed by RFC 6928.
        max_burst: u32 = 10, 0 => 10_000;
        /// Beyond a burst, packets are sent at this multiple of the window per round trip (own choice: fast enough for
        /// slow start, which grows by half per round trip).
        burst_gain: f64 = 2.0, 1.1 => 100.0;
        /// Whether idle and application-limited periods shrink the window (RFC 4341, section 5.1, names RFC 2861, which is
        /// followed; as in Linux not below the initial window).
        window_validation: bool = true, 0 => 1;
        /// Whether the window stays constant until a packet sent after the detection of a loss is acknowledged, like
        /// TCP's in fast recovery (described by S. Jero, 2013, section 2.2.3.1; RFC 4341 does not have it).
        virtual_recovery: bool = false, 0 => 1;
        /// Whether lost and marked acknowledgements change Ack Ratio (RFC 4341, section 6.1.2).
        ack_ratio_control: bool = true, 0 => 1;
        /// Receiver: maximum delay of an acknowledgement (RFC 4340, section 11.3: 0.2 s).
        ack_delay: TimeDelta = 200.0, 0.0 => 1_000.0;
        /// Time constant of the smoothed rate, a first-order low pass (S. Jero, 2013, section 5.2, requires smoothing
        /// without specifying it). A third of the 3 s after which that thesis's application sets its bit rate over
        /// CCID 2: by then 95 % of a change are reflected.
        rate_time_constant: TimeDelta = 1_000.0, 0.0 => 60_000.0;
    }
}
