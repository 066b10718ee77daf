/* A congestion controller in a program of your own: video over a link that is simulated here.
 *
 *     call [CONTROLLER [PARAMETERS]]
 *
 * Your program owns sockets, clock, encoder and RTP. The library takes events, each with its time, and gives rates. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

#define MS INT64_C(1000000)
#define SECONDS 60
#define PACKET 1200 /* bytes */

/* A call of the library that must succeed. */
static weir_status ok(weir_status status) {
    if (status < 0) {
        fprintf(stderr, "%s\n", weir_last_error());
        exit(1);
    }
    return status;
}

/* The link: a queue of up to 300 ms, then 25 ms of delay. Reports take 25 ms back. */
enum { QUEUE_MS = 300, ONE_WAY_MS = 25, MOST = 1 << 16 };

struct packet {
    uint64_t number;
    int64_t arrival_ns; /* -1 if the queue was full */
};

static struct packet sent[MOST]; /* those not yet reported, as a ring */
static size_t first, next;
static int64_t free_at; /* when the link will have sent everything queued */
static uint64_t carried; /* bytes since the last row */

static void carry(int64_t now, uint64_t number, uint32_t bytes, uint64_t link_bps) {
    struct packet *p = &sent[next++ % MOST];
    p->number = number;
    if (free_at - now > QUEUE_MS * MS) {
        p->arrival_ns = -1;
        return;
    }
    free_at = (free_at > now ? free_at : now) + (int64_t)(bytes * UINT64_C(8000000000) / link_bps);
    p->arrival_ns = free_at + ONE_WAY_MS * MS;
    carried += bytes;
}

/* What the receiver has seen by `now`; a packet that is missing before one that arrived is lost. */
static size_t report(int64_t now, weir_packet_report *reports, size_t most) {
    size_t count = 0, end = first;
    for (size_t i = first; i < next; i++)
        if (sent[i % MOST].arrival_ns >= 0 && sent[i % MOST].arrival_ns <= now)
            end = i + 1;
    for (; first < end && count < most; first++, count++) {
        const struct packet *p = &sent[first % MOST];
        reports[count] = (weir_packet_report){
            .number = p->number, .arrival_ns = p->arrival_ns, .received = p->arrival_ns >= 0};
    }
    return count;
}

/* Feedback on its way back. */
enum { REPORTS = 512, ON_THE_WAY = 4 };
static struct {
    weir_packet_report packets[REPORTS];
    size_t count;
    int64_t due;
} feedback[ON_THE_WAY];

static weir_handle controller;

static void send_packet(int64_t now, uint32_t bytes, uint32_t flags, uint32_t probe, uint64_t queued, uint64_t link_bps) {
    weir_sent_packet packet = {
        .size = sizeof packet, .flags = flags, .now_ns = now, .bytes = bytes, .probe = probe, .queued_bytes = queued};
    uint64_t number;
    ok(weir_controller_sent(controller, &packet, &number));
    carry(now, number, bytes, link_bps);
}

int main(int argc, char **argv) {
    if (weir_abi_version() != WEIR_ABI_VERSION) {
        fprintf(stderr, "this program is for ABI %d, the library has %u\n", WEIR_ABI_VERSION, weir_abi_version());
        return 1;
    }
    weir_setup setup = {
        .size = sizeof setup, .floor_bps = 100000, .ceiling_bps = 3000000, .start_bps = 300000, .seed = 1};
    ok(weir_controller_new(argc > 1 ? argv[1] : "gcc", argc > 2 ? argv[2] : NULL, &setup, &controller));

    uint64_t queued = 0; /* bytes of RTP waiting for the pacer */
    double budget = 0;   /* bits that the pacer may send */
    uint64_t bits_offered = 0;
    double share = 0;
    printf("  s  link kbit/s  target kbit/s  carried kbit/s  queue ms  RTT ms\n");
    for (int64_t ms = 0; ms < SECONDS * 1000; ms++) {
        int64_t now = ms * MS;
        uint64_t link_bps = ms >= 20000 && ms < 40000 ? 500000 : 1000000;

        int64_t at;
        if (ok(weir_controller_next_timeout(controller, &at, NULL)) == WEIR_STATUS_OK && at <= now)
            ok(weir_controller_on_timeout(controller, now));

        weir_target target = {.size = sizeof target};
        ok(weir_controller_target(controller, &target));
        if (ms % 33 == 0) { /* a frame */
            uint64_t frame = target.media_bps / 8 * 33 / 1000;
            queued += frame;
            ok(weir_controller_queue(controller, now, frame, queued, 0));
        }

        /* Media as the pacer and the window allow. */
        double most = target.pacing_bps == WEIR_UNPACED ? 1e9 : (double)target.pacing_bps;
        budget += most / 1000;
        if (budget > most / 100)
            budget = most / 100; /* what was not used within 10 ms is lost */
        weir_statistics statistics = {.size = sizeof statistics};
        while (queued > 0 && budget > 0) {
            uint32_t bytes = queued < PACKET ? (uint32_t)queued : PACKET;
            ok(weir_controller_statistics(controller, &statistics));
            if (statistics.bytes_in_flight > 0 && statistics.bytes_in_flight + bytes > target.window_bytes)
                break;
            queued -= bytes;
            budget -= bytes * 8.0;
            send_packet(now, bytes, 0, 0, queued, link_bps);
        }

        /* Probes: as many packets as asked for, back to back (a pacer would spread them at probe.rate_bps). */
        weir_probe probe = {.size = sizeof probe};
        while (ok(weir_controller_poll_probe(controller, now, &probe)) == WEIR_STATUS_OK) {
            uint64_t bytes = 0;
            for (uint32_t n = 0; n < probe.min_packets || bytes < probe.min_bytes; n++, bytes += PACKET)
                send_packet(now, PACKET, WEIR_SENT_PADDING, probe.id, queued, link_bps);
        }

        if (ms % 50 == 0) { /* the receiver reports */
            size_t slot = (size_t)(ms / 50) % ON_THE_WAY;
            feedback[slot].count = report(now, feedback[slot].packets, REPORTS);
            feedback[slot].due = now + ONE_WAY_MS * MS;
        }
        for (size_t i = 0; i < ON_THE_WAY; i++)
            if (feedback[i].count > 0 && feedback[i].due <= now) {
                ok(weir_controller_feedback(controller, now, feedback[i].packets, feedback[i].count,
                                            sizeof(weir_packet_report), -1));
                feedback[i].count = 0;
            }

        bits_offered += link_bps / 1000;
        if (ms % 5000 == 4999) {
            ok(weir_controller_target(controller, &target));
            ok(weir_controller_statistics(controller, &statistics));
            int64_t queue = free_at > now ? free_at - now : 0;
            printf("%3d %12.0f %14.0f %15.0f %9.0f %7.0f\n", (int)(ms / 1000 + 1), link_bps / 1e3,
                   target.media_bps / 1e3, carried * 8 / 5e3, queue / 1e6, statistics.rtt_ns / 1e6);
            share += carried * 8;
            carried = 0;
        }
    }
    printf("carried: %.0f %% of the link\n", 100 * share / bits_offered);

    weir_metric metrics[64];
    size_t count;
    ok(weir_controller_metrics(controller, metrics, 64, sizeof metrics[0], &count));
    for (size_t i = 0; i < count; i++)
        printf("%s %g\n", metrics[i].name, metrics[i].value);

    ok(weir_free(controller));
    return 0;
}
