/* An estimator for Weir in C, without a library: that of aimd.py, in the binary form of the protocol.
 *
 *     cc -O2 -o aimd examples/estimators/aimd.c
 *     weir estimator check ./aimd
 *     weir compare --controllers exec:./aimd,gcc --scenario quick
 *
 * --json speaks JSON throughout; --all asks for every event, to time the protocol. docs/estimators.md has the places of the fields.
 * Numbers are little-endian, and so has to be the machine. */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct head { uint32_t length, count; uint64_t turn; };
struct event { uint8_t kind, flags; uint16_t small; uint32_t number; int64_t now_ns; };
struct packet { uint64_t sequence; int64_t sent_ns, arrived_ns; uint32_t size, probe, flags, unused; };
struct answer {
    struct head head;
    uint32_t flags;
    uint16_t overhead_bytes;
    uint8_t repair[2];
    double media_bps, pacing_bps, padding_bps;
    uint64_t window_bytes;
    int64_t max_queue_age_ns, timer_ns;
};

enum { FEEDBACK = 2, LIMITS = 6, RTCP = 8, LAST = 11, ARRIVED = 1, MOST = 64 << 20 };
/* Bytes of an event of each kind, without a feedback's packets and the bytes of RTCP. */
static const size_t SIZES[LAST + 1] = { 0, 48, 32, 64, 24, 40, 32, 16, 16, 40, 24, 32 };

static double rate, floor_bps, ceiling_bps;
static uint64_t turn;
static int64_t least = INT64_MAX, sent;
static size_t packets, arrived;
static int64_t longest;

/* The clocks of the two ends have another zero each: only differences of the delay say something. */
static void on_arrival(int64_t delay) {
    longest = arrived == 0 || delay > longest ? delay : longest;
    least = delay < least ? delay : least;
    arrived++;
}

/* A feedback is whole: more if it tells of no queue, else less. */
static void decide(void) {
    if (packets > 0) {
        double lost = 1 - (double)arrived / (double)packets;
        double queue_ms = arrived > 0 ? (double)(longest - least) / 1e6 : 0;
        rate = queue_ms > 50 || lost > 0.05 ? rate * 0.85 : rate + 20000;
    }
    packets = arrived = 0;
}

/* A number after its name, where that begins here. */
static bool field(const char *at, const char *name, int64_t *value) {
    size_t length = strlen(name);
    if (strncmp(at, name, length) != 0) return false;
    *value = strtoll(at + length, NULL, 10);
    return true;
}

/* One pass over the names in a line. A turn has one feedback at most, since each is answered. */
static void read_json(const char *line) {
    for (const char *at = line; (at = strchr(at, '"')) != NULL; at++) {
        int64_t n;
        if (field(at, "\"turn\":", &n)) turn = (uint64_t)n;
        else if (field(at, "\"floor_bps\":", &n)) floor_bps = (double)n;
        else if (field(at, "\"ceiling_bps\":", &n)) ceiling_bps = (double)n;
        else if (field(at, "\"start_bps\":", &n)) rate = (double)n;
        else if (field(at, "\"sent_ns\":", &n)) sent = n, packets++;
        else if (field(at, "\"arrived_ns\":", &n)) on_arrival(n - sent);
    }
    decide();
}

static bool read_binary(void) {
    static char *body;
    struct head head;
    if (fread(&head, sizeof head, 1, stdin) != 1 || head.length > MOST) return false;
    body = realloc(body, head.length);
    if (body == NULL || fread(body, 1, head.length, stdin) != head.length) return false;
    turn = head.turn;
    for (size_t at = 0; at + sizeof(struct event) <= head.length;) {
        struct event event;
        memcpy(&event, body + at, sizeof event);
        if (event.kind == 0 || event.kind > LAST || at + SIZES[event.kind] > head.length) return false;
        if (event.kind == LIMITS) {
            uint64_t bounds[2];
            memcpy(bounds, body + at + sizeof event, sizeof bounds);
            floor_bps = (double)bounds[0], ceiling_bps = (double)bounds[1];
        }
        at += SIZES[event.kind];
        if (event.kind == RTCP) at += ((size_t)event.number + 7) / 8 * 8;
        if (event.kind != FEEDBACK) continue;
        struct packet packet;
        for (; packets < event.number && at + sizeof packet <= head.length; packets++, at += sizeof packet) {
            memcpy(&packet, body + at, sizeof packet);
            if (packet.flags & ARRIVED) on_arrival(packet.arrived_ns - packet.sent_ns);
        }
        decide();
    }
    return true;
}

int main(int count, char **words) {
    bool is_json = false, wants_all = false;
    for (int i = 1; i < count; i++) {
        is_json |= strcmp(words[i], "--json") == 0;
        wants_all |= strcmp(words[i], "--all") == 0;
    }
    char *line = NULL;
    size_t room = 0;
    /* The first turn and its answer are JSON in both forms. */
    for (bool is_first = true; is_first || is_json ? getline(&line, &room, stdin) > 0 : read_binary(); is_first = false) {
        if (is_first || is_json) read_json(line);
        rate = rate < floor_bps ? floor_bps : rate > ceiling_bps ? ceiling_bps : rate;
        if (is_first) {
            printf("{\"turn\":0,\"media_bps\":%.17g,\"about\":{\"version\":2,\"name\":\"aimd.c\",\"form\":\"%s\",", rate,
                   is_json ? "json" : "binary");
            if (!wants_all) printf("\"events\":[\"feedback\",\"limits\"],");
            printf("\"answers\":[\"feedback\",\"limits\"],\"feedback\":{\"interval_ms\":100}}}\n");
        } else if (is_json) {
            printf("{\"turn\":%llu,\"media_bps\":%.17g}\n", (unsigned long long)turn, rate);
        } else {
            struct answer answer = { .head = { sizeof answer - sizeof answer.head, 0, turn }, .media_bps = rate };
            fwrite(&answer, sizeof answer, 1, stdout);
        }
        fflush(stdout);
    }
    return 0;
}
