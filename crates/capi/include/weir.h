/* Weir: congestion control and repair for live audio and video over RTP.
 *
 * Made by cbindgen from crates/capi: change the sources there, then run
 * WEIR_BLESS=1 cargo test -p weir-capi --test header
 *
 * Times are nanoseconds of one clock of the caller's, which never goes back (CLOCK_MONOTONIC, for one); rates are
 * bits per second; sizes are bytes.
 *
 * Handles. Objects are named by numbers. 0 is none. A handle that was freed, was never given out or names an object
 * of another kind is refused with a status; it is never followed as a pointer.
 *
 * Threads. Every function may be called from any thread. Calls on one handle wait for each other, so that the order in
 * which threads make them is the order of events. The text of weir_last_error is of the calling thread alone.
 *
 * Structs. Each begins with its size, which the caller sets: weir_setup setup = {.size = sizeof setup}. Members not
 * named in the initialiser are 0, which is the default of each. */


#ifndef WEIR_H
#define WEIR_H

#include <stddef.h>
#include <stdint.h>

// The packet is padding.
#define WEIR_SENT_PADDING 1

// The packet is repair: forward error correction.
#define WEIR_SENT_REPAIR 2

// The packet is a retransmission on a stream of its own (RFC 4588).
#define WEIR_SENT_RETRANSMISSION 4

// The member transport_number is set. Without it for all packets, a packet's transport-wide number is the lower 16 bits
// of its number.
#define WEIR_SENT_HAS_TRANSPORT_NUMBER 8

// The members ssrc and rtp_sequence are set, which RFC 8888 feedback needs.
#define WEIR_SENT_HAS_RTP 16

// REMB: rate_bps.
#define WEIR_CUE_REMB 1

// TMMBR (RFC 5104): rate_bps.
#define WEIR_CUE_TMMBR 2

// NADA's receiver-side report (RFC 8698): rate_bps is r_recv, delay_ns x_curr, count rmode (0 or 1).
#define WEIR_CUE_NADA 3

// The packet that the receiver plays next (NADU): number, and delay_ns until then, negative if unknown.
#define WEIR_CUE_NEXT_DATA_UNIT 4

// Capacity announced by a device on the path: rate_bps.
#define WEIR_CUE_CAPACITY 5

// Rate that the transport below allows (DCCP): rate_bps, smoothed_bps, rtt_ns.
#define WEIR_CUE_TRANSPORT_RATE 6

// The transport's queue has refused packets of a frame: count.
#define WEIR_CUE_SEND_REJECTED 7

// No congestion window.
#define WEIR_NO_WINDOW UINT64_MAX

// Nothing is discarded from the RTP queue.
#define WEIR_NO_LIMIT INT64_MAX

// A pacing rate that sends packets at once.
#define WEIR_UNPACED UINT64_MAX

// No repair packets.
#define WEIR_REPAIR_OFF 0

// One parity packet for every repair_block media packets.
#define WEIR_REPAIR_PARITY 1

// None, but parity over up to repair_block of the last packets is kept for a change to WEIR_REPAIR_PARITY.
#define WEIR_REPAIR_STANDBY 2

// Reed-Solomon blocks (RFC 6865) of repair_block packets, of which repair_packets are repair.
#define WEIR_REPAIR_REED_SOLOMON 3

// A periodic update of the rate.
#define WEIR_TIMEOUT_RATE_UPDATE 0

// Feedback is overdue.
#define WEIR_TIMEOUT_FEEDBACK_MISSING 1

// A probe is due or has expired.
#define WEIR_TIMEOUT_PROBE 2

// Length of a metric's name with its end.
#define WEIR_METRIC_NAME 48

// Version of the ABI of this header. A library of another version is not compatible.
#define WEIR_ABI_VERSION 1

// Outcome of a call. Failures are negative; `weir_last_error` has their text.
enum weir_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done.
  WEIR_STATUS_OK = 0,
  // Done, and there is nothing to return: no probe, no timeout, no packet.
  WEIR_STATUS_NONE = 1,
  // A pointer is null.
  WEIR_STATUS_NULL_POINTER = -1,
  // A pointer is not aligned for its type.
  WEIR_STATUS_MISALIGNED = -2,
  // A struct's size is not that of this version of the ABI: its size member was not set, or another header was used.
  WEIR_STATUS_WRONG_SIZE = -3,
  // The handle is 0, was freed, or was never given out.
  WEIR_STATUS_BAD_HANDLE = -4,
  // The handle names an object of another kind.
  WEIR_STATUS_WRONG_KIND = -5,
  // A value is outside its range.
  WEIR_STATUS_BAD_VALUE = -6,
  // There is no such name: of a controller, a parameter or a metric.
  WEIR_STATUS_UNKNOWN_NAME = -7,
  // Bytes from the network do not parse. Messages before the fault have been applied.
  WEIR_STATUS_MALFORMED = -8,
  // The caller's buffer is too small; the length needed is returned, and nothing is lost.
  WEIR_STATUS_BUFFER_TOO_SMALL = -9,
  // The object cannot do this.
  WEIR_STATUS_UNSUPPORTED = -10,
  // More objects, streams or packets than this library keeps.
  WEIR_STATUS_TOO_MANY = -11,
  // A simulation failed.
  WEIR_STATUS_RUN_FAILED = -12,
  // A fault of this library. The object cannot be used any more, only freed.
  WEIR_STATUS_INTERNAL = -13,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum weir_status weir_status;
#else
typedef int32_t weir_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// An object's name: 0 is none. From the top: 8 bits for the kind, 32 for the slot's generation, 24 for the slot.
typedef uint64_t weir_handle;

// Configuration of a controller, beside its name and parameters.
typedef struct weir_setup {
  // sizeof(weir_setup).
  uint32_t size;
  // Clock rate of RTP timestamps in Hz, for the jitter in receiver reports; 0 for 90,000.
  uint32_t rtp_clock_hz;
  // Lower bound of the media rate.
  uint64_t floor_bps;
  // Upper bound of the media rate.
  uint64_t ceiling_bps;
  // Media rate before the first feedback.
  uint64_t start_bps;
  // Time of creation. No event is earlier.
  int64_t now_ns;
  // Seed of controllers that use random numbers.
  uint64_t seed;
  // NTP time (64 bits, as in sender reports) at 0 of the caller's clock, so that round-trip times can be taken from
  // receiver reports; 0 if the caller sends no sender reports.
  uint64_t ntp_zero;
} weir_setup;

// A packet that has just been sent.
typedef struct weir_sent_packet {
  // sizeof(weir_sent_packet).
  uint32_t size;
  // WEIR_SENT_ flags.
  uint32_t flags;
  // When it was sent.
  int64_t now_ns;
  // RTP header, extensions and payload, without UDP and IP: 1 to 65,535.
  uint32_t bytes;
  // The probe cluster that it belongs to, 0 for none.
  uint32_t probe;
  // Bytes of RTP still queued behind it.
  uint64_t queued_bytes;
  // Its RTP stream.
  uint32_t ssrc;
  // Its RTP sequence number.
  uint16_t rtp_sequence;
  // Its transport-wide sequence number.
  uint16_t transport_number;
} weir_sent_packet;

// One packet's entry in feedback.
typedef struct weir_packet_report {
  // The packet's number, as weir_controller_sent gave it.
  uint64_t number;
  // Arrival by the receiver's clock, which need not agree with the caller's. Ignored if the packet was lost.
  int64_t arrival_ns;
  // 1 if received, 0 if reported lost.
  uint8_t received;
  // The ECN field on arrival (RFC 3168): 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
  uint8_t ecn;
  // 0.
  uint8_t reserved[6];
} weir_packet_report;

// A receiver report block (RFC 3550, section 6.4.1).
typedef struct weir_report_block {
  // sizeof(weir_report_block).
  uint32_t size;
  // Packets expected since the last report.
  uint32_t expected;
  // When it was received.
  int64_t now_ns;
  // Share of packets lost since the last report, 0 to 1.
  double fraction_lost;
  // Packets lost since the start.
  int64_t cumulative_lost;
  // Extended highest sequence number received.
  uint64_t highest_sequence;
  // Interarrival jitter.
  int64_t jitter_ns;
  // Round-trip time; negative if unknown.
  int64_t rtt_ns;
} weir_report_block;

// A cue with few numbers. Which members count depends on its kind; the others are ignored.
typedef struct weir_cue {
  // sizeof(weir_cue).
  uint32_t size;
  // A WEIR_CUE_ number.
  uint32_t kind;
  // When it was received.
  int64_t now_ns;
  // A rate.
  uint64_t rate_bps;
  // The rate, smoothed.
  uint64_t smoothed_bps;
  // A delay.
  int64_t delay_ns;
  // Round-trip time; negative if unknown.
  int64_t rtt_ns;
  // A packet's number.
  uint64_t number;
  // A count or mode.
  uint32_t count;
  // 0.
  uint32_t reserved;
} weir_cue;

// A controller's wishes.
typedef struct weir_target {
  // sizeof(weir_target).
  uint32_t size;
  // Bytes of headers in each packet, down to IP, that media_bps covers beside the payload; 0 if it is the payload's
  // rate alone.
  uint32_t overhead_bytes;
  // Rate for the encoders.
  uint64_t media_bps;
  // Rate at which a pacer should release packets, or WEIR_UNPACED.
  uint64_t pacing_bps;
  // Rate up to which a pacer should fill with padding; 0 for none.
  uint64_t padding_bps;
  // Bytes that may be in flight, or WEIR_NO_WINDOW.
  uint64_t window_bytes;
  // Age at which the RTP queue should be discarded, or WEIR_NO_LIMIT.
  int64_t max_queue_age_ns;
  // A WEIR_REPAIR_ number.
  uint32_t repair;
  // Packets of a repair block, 0 for none.
  uint16_t repair_block;
  // Repair packets of a Reed-Solomon block.
  uint16_t repair_packets;
} weir_target;

// A short burst at a given rate that measures capacity. Its packets are sent with its number in the member probe.
typedef struct weir_probe {
  // sizeof(weir_probe).
  uint32_t size;
  // Number of the cluster, never 0.
  uint32_t id;
  // Rate at which it is sent.
  uint64_t rate_bps;
  // It ends once it has this many packets ...
  uint32_t min_packets;
  // 0.
  uint32_t reserved;
  // ... and this many bytes.
  uint64_t min_bytes;
} weir_probe;

// Counters and measurements of a controller's history of sent packets.
typedef struct weir_statistics {
  // sizeof(weir_statistics).
  uint32_t size;
  // 0.
  uint32_t reserved;
  // Round-trip time of the latest report; negative before the first.
  int64_t rtt_ns;
  // Bytes sent and neither reported nor given up.
  uint64_t bytes_in_flight;
  // Packets sent.
  uint64_t sent;
  // Reports of packets that were not sent.
  uint64_t unknown;
  // Reports of packets that are no longer kept.
  uint64_t late;
  // Reports that repeat an earlier one.
  uint64_t duplicate;
  // Packets that left the flight without a report.
  uint64_t unreported;
  // RTCP messages that did not parse.
  uint64_t malformed;
} weir_statistics;

// An internal value of a controller.
typedef struct weir_metric {
  // Its name, with the unit as suffix (_ms, _bps, _bytes) or none; ends with 0.
  char name[WEIR_METRIC_NAME];
  // Its value; NaN while there is none.
  double value;
} weir_metric;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of the library's ABI: compare it with WEIR_ABI_VERSION before other calls.
uint32_t weir_abi_version(void);

// Version of the library, as "0.1.0".
const char *weir_version(void);

// 1 if this library can simulate (weir_run_json), 0 if it was built without.
int32_t weir_has_lab(void);

// 1 if this library takes learned policies as controllers ("onnx:FILE"), 0 if it was built without.
int32_t weir_has_onnx(void);

// Text of this thread's last failure, which names the field, its value and what was expected; empty before the first.
// Valid until the thread's next failure.
const char *weir_last_error(void);

// Frees an object of any kind. Its handle is refused afterwards, and never given out again.
weir_status weir_free(weir_handle handle);

// Copies a text, without an end of 0, to a buffer of `capacity` bytes; `length` is set to its length.
weir_status weir_text_copy(weir_handle text, char *buffer, size_t capacity, size_t *length);

// Name of the `index`-th controller, from 0; null after the last. Valid for ever. Each is also there as NAME+fec,
// NAME+map and NAME+vidaptive.
const char *weir_controller_name(size_t index);

// Makes a controller by name ("gcc", "nada", "scream2"; weir_controller_name has them all). `parameters` are name=value
// pairs separated by commas or lines, as "beta=0.8, probing=false", or a flat TOML table; null for none.
//
// "onnx:FILE" is a learned policy in a file, which is read here, in libraries with the feature `onnx`: weir_has_onnx says so,
// others return WEIR_STATUS_UNSUPPORTED.
weir_status weir_controller_new(const char *name,
                                const char *parameters,
                                const struct weir_setup *setup,
                                weir_handle *controller);

// A packet has been sent. `number`, which may be null, is set to its number: 0 for the first packet, one more for each.
// The library remembers what is needed for feedback.
weir_status weir_controller_sent(weir_handle controller,
                                 const struct weir_sent_packet *packet,
                                 uint64_t *number);

// Feedback in structs, `element_size` = sizeof(weir_packet_report) bytes each, was received. `held_ns` is the time from
// the arrival of the newest packet to the report, which the round-trip time excludes; negative if unknown.
weir_status weir_controller_feedback(weir_handle controller,
                                     int64_t now_ns,
                                     const struct weir_packet_report *packets,
                                     size_t count,
                                     size_t element_size,
                                     int64_t held_ns);

// A datagram of RTCP was received, compound or of reduced size. Used are transport-wide feedback, RFC 8888 feedback,
// receiver report blocks, run lengths of losses, discards and losses after repair (RTCP XR) with Weir's one-way delays, REMB,
// TMMBR, NADU and NADA's reports; others are passed over.
weir_status weir_controller_rtcp(weir_handle controller,
                                 int64_t now_ns,
                                 const uint8_t *bytes,
                                 size_t length);

// A receiver report block was received, for stacks that parse RTCP themselves.
weir_status weir_controller_report_block(weir_handle controller, const struct weir_report_block *block);

// Another cue was received.
weir_status weir_controller_cue(weir_handle controller, const struct weir_cue *cue);

// Gets the controller's present wishes. Set target->size before.
weir_status weir_controller_target(weir_handle controller, struct weir_target *target);

// When to call weir_controller_on_timeout next; WEIR_STATUS_NONE if never. `reason`, which may be null, is set to a
// WEIR_TIMEOUT_ number.
weir_status weir_controller_next_timeout(weir_handle controller,
                                         int64_t *at_ns,
                                         uint32_t *reason);

// The time of weir_controller_next_timeout may have come. Earlier calls do no harm.
weir_status weir_controller_on_timeout(weir_handle controller, int64_t now_ns);

// Takes the next probe cluster to be sent at `now_ns`; WEIR_STATUS_NONE if there is none. Set probe->size before.
weir_status weir_controller_poll_probe(weir_handle controller,
                                       int64_t now_ns,
                                       struct weir_probe *probe);

// Changes the bounds on the media rate; the target obeys them at once.
weir_status weir_controller_set_limits(weir_handle controller,
                                       uint64_t floor_bps,
                                       uint64_t ceiling_bps,
                                       int64_t now_ns);

// A frame of `added_bytes` has entered the RTP queue, which holds `queued_bytes` with it; the oldest packet has waited
// for `oldest_age_ns`. For controllers that look at this queue (SCReAM).
weir_status weir_controller_queue(weir_handle controller,
                                  int64_t now_ns,
                                  uint64_t added_bytes,
                                  uint64_t queued_bytes,
                                  int64_t oldest_age_ns);

// Round-trip time, bytes in flight, and counters of feedback. Set statistics->size before.
weir_status weir_controller_statistics(weir_handle controller, struct weir_statistics *statistics);

// An internal value of the controller by name; NaN while there is none.
weir_status weir_controller_metric(weir_handle controller, const char *name, double *value);

// All internal values, always in the same order, to an array of `capacity` structs of `element_size` =
// sizeof(weir_metric) bytes; `count` is set to the number of values that there are.
weir_status weir_controller_metrics(weir_handle controller,
                                    struct weir_metric *metrics,
                                    size_t capacity,
                                    size_t element_size,
                                    size_t *count);

// Makes an encoder of blocks with `sources` source and `repairs` repair packets, 255 together: as many losses in a block
// as it has repair packets can be repaired.
weir_status weir_fec_encoder_new(uint32_t sources,
                                 uint32_t repairs,
                                 weir_handle *encoder);

// Changes the number of source and repair packets from the next block on.
weir_status weir_fec_encoder_set(weir_handle encoder, uint32_t sources, uint32_t repairs);

// Protects a packet of `length` bytes. Writes the source packet, which is sent in its place and is 6 bytes longer, to a
// buffer of `capacity` bytes; `source_length` is set to its length. The buffers may overlap.
weir_status weir_fec_encoder_source(weir_handle encoder,
                                    const uint8_t *packet,
                                    size_t length,
                                    uint8_t *source,
                                    size_t capacity,
                                    size_t *source_length);

// Takes the next repair packet, to be sent as a datagram or RTP payload of its own; WEIR_STATUS_NONE if there is none.
// The last source packet of a block makes all of its repair packets.
weir_status weir_fec_encoder_repair(weir_handle encoder,
                                    uint8_t *repair,
                                    size_t capacity,
                                    size_t *repair_length);

// Makes a decoder of blocks of up to `sources` source packets, 1 to 254. It keeps packets for `age_ns`: longer than a block
// takes to send, shorter than playout waits.
weir_status weir_fec_decoder_new(uint32_t sources,
                                 int64_t age_ns,
                                 weir_handle *decoder);

// A source packet was received. `packet_length` is set to the length of the packet that was protected: the first bytes
// of `source`.
weir_status weir_fec_decoder_source(weir_handle decoder,
                                    int64_t now_ns,
                                    const uint8_t *source,
                                    size_t length,
                                    size_t *packet_length);

// A repair packet was received.
weir_status weir_fec_decoder_repair(weir_handle decoder,
                                    int64_t now_ns,
                                    const uint8_t *repair,
                                    size_t length);

// Takes the next recovered packet; WEIR_STATUS_NONE if there is none. A packet that arrived is never recovered.
weir_status weir_fec_decoder_recovered(weir_handle decoder,
                                       uint8_t *packet,
                                       size_t capacity,
                                       size_t *packet_length);

// Runs a simulation and waits for its end: the same numbers as `weir run --json` for the same scenario and seed.
// `scenario` is a built-in scenario's name, a file's path, or the text of one (TOML). Null for `controller` and `seed`
// takes the scenario's own. `result` is a text, JSON: copy it by weir_text_copy, free it by weir_free.
//
// Only in libraries with the feature `lab`: weir_has_lab says so.
weir_status weir_run_json(const char *scenario,
                          const char *controller,
                          const uint64_t *seed,
                          weir_handle *result);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WEIR_H */
