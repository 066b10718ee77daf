/* Misuse of the library: every call has to give an error code, with a text, and nothing else. Run plainly, under valgrind
 * and with the sanitizers. */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

static int faults;
/* Divides the number of rounds, for runs in which each instruction is checked. */
static int less = 1;

#define EXPECT(call, status) expect((call), (status), #call, __LINE__)

static void expect(weir_status got, weir_status wanted, const char *call, int line) {
    if (got != wanted) {
        fprintf(stderr, "line %d: %s is %d: expected %d (%s)\n", line, call, (int)got, (int)wanted, weir_last_error());
        faults++;
    }
}

static void says(const char *part, int line) {
    if (strstr(weir_last_error(), part) == NULL) {
        fprintf(stderr, "line %d: \"%s\" does not say \"%s\"\n", line, weir_last_error(), part);
        faults++;
    }
}
#define SAYS(part) says((part), __LINE__)

static weir_setup setup(void) {
    return (weir_setup){
        .size = sizeof(weir_setup), .floor_bps = 100000, .ceiling_bps = 3000000, .start_bps = 300000, .seed = 1};
}

static weir_handle make(const char *name) {
    weir_setup s = setup();
    weir_handle h = 0;
    EXPECT(weir_controller_new(name, NULL, &s, &h), WEIR_STATUS_OK);
    return h;
}

/* Every function that takes a handle, with this one. */
static void all_calls(weir_handle h, weir_status wanted) {
    weir_sent_packet packet = {.size = sizeof packet, .bytes = 1000};
    weir_report_block block = {.size = sizeof block, .rtt_ns = -1};
    weir_cue cue = {.size = sizeof cue, .kind = WEIR_CUE_REMB, .rate_bps = 500000, .rtt_ns = -1};
    weir_target target = {.size = sizeof target};
    weir_probe probe = {.size = sizeof probe};
    weir_statistics statistics = {.size = sizeof statistics};
    weir_packet_report report = {.number = 0, .received = 1};
    weir_metric metrics[8];
    uint64_t number;
    int64_t at;
    double value;
    size_t count;
    EXPECT(weir_controller_sent(h, &packet, &number), wanted);
    EXPECT(weir_controller_feedback(h, 1, &report, 1, sizeof report, -1), wanted);
    EXPECT(weir_controller_rtcp(h, 1, NULL, 0), wanted);
    EXPECT(weir_controller_report_block(h, &block), wanted);
    EXPECT(weir_controller_cue(h, &cue), wanted);
    EXPECT(weir_controller_target(h, &target), wanted);
    EXPECT(weir_controller_next_timeout(h, &at, NULL), wanted);
    EXPECT(weir_controller_on_timeout(h, 1), wanted);
    EXPECT(weir_controller_poll_probe(h, 1, &probe), wanted);
    EXPECT(weir_controller_set_limits(h, 1, 2, 1), wanted);
    EXPECT(weir_controller_queue(h, 1, 1, 1, 0), wanted);
    EXPECT(weir_controller_statistics(h, &statistics), wanted);
    EXPECT(weir_controller_metric(h, "x", &value), wanted);
    EXPECT(weir_controller_metrics(h, metrics, 8, sizeof metrics[0], &count), wanted);
}

static void fec_calls(weir_handle h, weir_status wanted) {
    uint8_t bytes[64] = {0};
    size_t length;
    EXPECT(weir_fec_encoder_set(h, 4, 2), wanted);
    EXPECT(weir_fec_encoder_source(h, bytes, 10, bytes, sizeof bytes, &length), wanted);
    EXPECT(weir_fec_encoder_repair(h, bytes, sizeof bytes, &length), wanted);
    EXPECT(weir_fec_decoder_source(h, 1, bytes, 10, &length), wanted);
    EXPECT(weir_fec_decoder_repair(h, 1, bytes, 10), wanted);
    EXPECT(weir_fec_decoder_recovered(h, bytes, sizeof bytes, &length), wanted);
    EXPECT(weir_text_copy(h, (char *)bytes, sizeof bytes, &length), wanted);
}

static void handles(void) {
    weir_handle controller = make("gcc"), encoder, decoder;
    EXPECT(weir_fec_encoder_new(4, 2, &encoder), WEIR_STATUS_OK);
    EXPECT(weir_fec_decoder_new(4, 1000000000, &decoder), WEIR_STATUS_OK);
    /* None, invented ones, and those near real ones. */
    const weir_handle wrong[] = {0, 1, UINT64_MAX, controller + 1, controller ^ (UINT64_C(1) << 30), controller | 0xffffff,
                                 (weir_handle)(uintptr_t)&controller, UINT64_C(1) << 56 | 0xfff0};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weir_target target = {.size = sizeof target};
        weir_status status = weir_controller_target(wrong[i], &target);
        if (status != WEIR_STATUS_BAD_HANDLE && status != WEIR_STATUS_WRONG_KIND) {
            fprintf(stderr, "handle %llx: %d\n", (unsigned long long)wrong[i], (int)status);
            faults++;
        }
    }
    all_calls(0, WEIR_STATUS_BAD_HANDLE);
    fec_calls(0, WEIR_STATUS_BAD_HANDLE);
    /* Of another kind. */
    all_calls(encoder, WEIR_STATUS_WRONG_KIND);
    SAYS("names a FEC encoder: expected a controller");
    all_calls(decoder, WEIR_STATUS_WRONG_KIND);
    fec_calls(controller, WEIR_STATUS_WRONG_KIND);
    /* After their end, and twice. */
    EXPECT(weir_free(controller), WEIR_STATUS_OK);
    all_calls(controller, WEIR_STATUS_BAD_HANDLE);
    EXPECT(weir_free(controller), WEIR_STATUS_BAD_HANDLE);
    SAYS("was freed");
    EXPECT(weir_free(0), WEIR_STATUS_BAD_HANDLE);
    EXPECT(weir_free(encoder), WEIR_STATUS_OK);
    EXPECT(weir_free(decoder), WEIR_STATUS_OK);
    uint8_t byte = 0;
    size_t n;
    EXPECT(weir_fec_encoder_set(encoder, 4, 2), WEIR_STATUS_BAD_HANDLE);
    EXPECT(weir_fec_encoder_repair(encoder, &byte, 1, &n), WEIR_STATUS_BAD_HANDLE);
    EXPECT(weir_fec_decoder_repair(decoder, 1, &byte, 1), WEIR_STATUS_BAD_HANDLE);
    /* The slot is used again; the old handle stays dead. */
    for (int i = 0; i < 1000 / less; i++) {
        weir_handle again = make("fixed");
        if (again == controller)
            faults++;
        weir_target target = {.size = sizeof target};
        EXPECT(weir_controller_target(controller, &target), WEIR_STATUS_BAD_HANDLE);
        EXPECT(weir_free(again), WEIR_STATUS_OK);
    }
}

static void pointers(void) {
    weir_handle h = make("gcc"), other = 1, encoder, decoder;
    weir_setup s = setup();
    EXPECT(weir_fec_encoder_new(4, 2, &encoder), WEIR_STATUS_OK);
    EXPECT(weir_fec_decoder_new(4, 1000000000, &decoder), WEIR_STATUS_OK);
    EXPECT(weir_controller_new(NULL, NULL, &s, &other), WEIR_STATUS_NULL_POINTER);
    SAYS("name is null");
    EXPECT(weir_controller_new("gcc", NULL, NULL, &other), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_new("gcc", NULL, &s, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_sent(h, NULL, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_feedback(h, 1, NULL, 3, sizeof(weir_packet_report), -1), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_feedback(h, 1, NULL, 0, sizeof(weir_packet_report), -1), WEIR_STATUS_OK);
    EXPECT(weir_controller_rtcp(h, 1, NULL, 8), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_report_block(h, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_cue(h, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_target(h, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_next_timeout(h, NULL, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_poll_probe(h, 1, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_statistics(h, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_metric(h, NULL, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_metric(h, "x", NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_controller_metrics(h, NULL, 64, sizeof(weir_metric), NULL), WEIR_STATUS_NULL_POINTER);
    size_t n = 0;
    EXPECT(weir_controller_metrics(h, NULL, 64, sizeof(weir_metric), &n), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_fec_encoder_new(4, 2, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_fec_decoder_new(4, 1, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_fec_encoder_source(encoder, NULL, 5, NULL, 0, &n), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_fec_encoder_source(encoder, NULL, 0, NULL, 9, &n), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_fec_encoder_repair(encoder, NULL, 9, &n), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_fec_decoder_source(decoder, 1, NULL, 9, &n), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_fec_decoder_source(decoder, 1, NULL, 0, NULL), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_fec_decoder_repair(decoder, 1, NULL, 9), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_fec_decoder_recovered(decoder, NULL, 9, &n), WEIR_STATUS_NULL_POINTER);
    EXPECT(weir_text_copy(h, NULL, 0, NULL), WEIR_STATUS_NULL_POINTER);
    /* Odd addresses: taken as numbers, so that this program itself stays defined. */
    uintptr_t odd = (uintptr_t)&s + 1;
    weir_setup *misaligned;
    memcpy(&misaligned, &odd, sizeof odd);
    EXPECT(weir_controller_new("gcc", NULL, misaligned, &other), WEIR_STATUS_MISALIGNED);
    /* A failed _new leaves no handle behind. */
    if (other != 0)
        faults++;
    EXPECT(weir_free(h), WEIR_STATUS_OK);
    EXPECT(weir_free(encoder), WEIR_STATUS_OK);
    EXPECT(weir_free(decoder), WEIR_STATUS_OK);
}

static void sizes_and_values(void) {
    weir_handle h = make("gcc"), other;
    weir_setup s = setup();
    for (uint32_t size = 0; size < 2 * sizeof s; size += 4) {
        s.size = size;
        if (size != sizeof s)
            EXPECT(weir_controller_new("gcc", NULL, &s, &other), WEIR_STATUS_WRONG_SIZE);
    }
    SAYS("weir_setup.size is");
    /* Only the size is read of a struct that is smaller than expected. */
    uint32_t *small = malloc(sizeof *small);
    *small = 4;
    EXPECT(weir_controller_target(h, (weir_target *)(void *)small), WEIR_STATUS_WRONG_SIZE);
    EXPECT(weir_controller_sent(h, (const weir_sent_packet *)(void *)small, NULL), WEIR_STATUS_WRONG_SIZE);
    free(small);
    weir_packet_report report = {.received = 1};
    EXPECT(weir_controller_feedback(h, 1, &report, 1, 8, -1), WEIR_STATUS_WRONG_SIZE);
    EXPECT(weir_controller_feedback(h, 1, &report, SIZE_MAX / 2, sizeof report, -1), WEIR_STATUS_BAD_VALUE);
    report.received = 2;
    EXPECT(weir_controller_feedback(h, 1, &report, 1, sizeof report, -1), WEIR_STATUS_BAD_VALUE);
    SAYS("packet 0: received is 2: expected 0 or 1");
    report = (weir_packet_report){.received = 1, .ecn = 9};
    EXPECT(weir_controller_feedback(h, 1, &report, 1, sizeof report, -1), WEIR_STATUS_BAD_VALUE);
    report = (weir_packet_report){.received = 1, .arrival_ns = INT64_MIN};
    EXPECT(weir_controller_feedback(h, 1, &report, 1, sizeof report, -1), WEIR_STATUS_BAD_VALUE);
    /* Never sent: counted, no error, since the network says so. */
    report = (weir_packet_report){.number = 12345, .received = 1};
    EXPECT(weir_controller_feedback(h, 1, &report, 1, sizeof report, -1), WEIR_STATUS_OK);
    weir_statistics statistics = {.size = sizeof statistics};
    EXPECT(weir_controller_statistics(h, &statistics), WEIR_STATUS_OK);
    if (statistics.unknown != 1)
        faults++;

    weir_sent_packet packet = {.size = sizeof packet};
    EXPECT(weir_controller_sent(h, &packet, NULL), WEIR_STATUS_BAD_VALUE);
    SAYS("bytes is 0: expected 1 to 65535");
    packet = (weir_sent_packet){.size = sizeof packet, .bytes = 1000, .now_ns = -5};
    EXPECT(weir_controller_sent(h, &packet, NULL), WEIR_STATUS_BAD_VALUE);
    packet = (weir_sent_packet){.size = sizeof packet, .bytes = 1000, .flags = 0x4000};
    EXPECT(weir_controller_sent(h, &packet, NULL), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_controller_on_timeout(h, INT64_MIN), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_controller_on_timeout(h, INT64_MAX), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_controller_set_limits(h, 5, 4, 1), WEIR_STATUS_BAD_VALUE);
    SAYS("floor_bps is 5: expected at most ceiling_bps, 4");
    weir_cue cue = {.size = sizeof cue, .kind = 99};
    EXPECT(weir_controller_cue(h, &cue), WEIR_STATUS_BAD_VALUE);
    weir_report_block block = {.size = sizeof block, .fraction_lost = 2};
    EXPECT(weir_controller_report_block(h, &block), WEIR_STATUS_BAD_VALUE);

    s = setup();
    EXPECT(weir_controller_new("nadda", NULL, &s, &other), WEIR_STATUS_UNKNOWN_NAME);
    SAYS("did you mean `nada`?");
    EXPECT(weir_controller_new("gcc", "bata=0.8", &s, &other), WEIR_STATUS_UNKNOWN_NAME);
    SAYS("did you mean `beta`?");
    EXPECT(weir_controller_new("gcc", "beta=7", &s, &other), WEIR_STATUS_BAD_VALUE);
    SAYS("parameter `beta` of controller `gcc` is 7");
    EXPECT(weir_controller_new("gcc", "beta", &s, &other), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_controller_new("\xff\xfe", NULL, &s, &other), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_controller_new("gcc", "beta = 0.8 # TOML\n", &s, &other), WEIR_STATUS_OK);
    double value;
    EXPECT(weir_controller_metric(other, "no such value", &value), WEIR_STATUS_UNKNOWN_NAME);
    EXPECT(weir_free(other), WEIR_STATUS_OK);
    s.now_ns = INT64_MIN;
    EXPECT(weir_controller_new("gcc", NULL, &s, &other), WEIR_STATUS_BAD_VALUE);

    EXPECT(weir_fec_encoder_new(0, 2, &other), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_fec_encoder_new(200, 100, &other), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_fec_encoder_new(UINT32_MAX, UINT32_MAX, &other), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_fec_decoder_new(4, -1, &other), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_fec_decoder_new(0, 1000, &other), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_fec_decoder_new(255, 1000, &other), WEIR_STATUS_BAD_VALUE);
    EXPECT(weir_free(h), WEIR_STATUS_OK);
}

/* Bytes from the network: random ones, and feedback that is cut off. */
static void bytes(void) {
    weir_handle h = make("gcc"), decoder;
    EXPECT(weir_fec_decoder_new(4, 1000000000, &decoder), WEIR_STATUS_OK);
    uint32_t random = 1;
    for (int i = 0; i < 2000 / less; i++) {
        size_t length = (size_t)i % 61;
        uint8_t *datagram = malloc(length + 1); /* of its exact size, so that reading past it is seen */
        for (size_t b = 0; b < length; b++) {
            random = random * 1664525u + 1013904223u;
            datagram[b] = (uint8_t)(random >> 24);
        }
        if (length > 4 && i % 2 == 0) { /* a common header that fits */
            datagram[0] = (uint8_t)(0x80 | (datagram[0] & 0x1f));
            datagram[1] = (uint8_t)(200 + i % 8);
            datagram[2] = 0;
            datagram[3] = (uint8_t)(length / 4 - 1);
        }
        weir_sent_packet packet = {.size = sizeof packet, .now_ns = i, .bytes = 1000};
        EXPECT(weir_controller_sent(h, &packet, NULL), WEIR_STATUS_OK);
        weir_status status = weir_controller_rtcp(h, i, datagram, length);
        size_t n;
        weir_status repair = weir_fec_decoder_repair(decoder, i, datagram, length);
        weir_status source = weir_fec_decoder_source(decoder, i, datagram, length, &n);
        uint8_t out[128];
        while (weir_fec_decoder_recovered(decoder, out, sizeof out, &n) == WEIR_STATUS_OK) {
        }
        if ((status != WEIR_STATUS_OK && status != WEIR_STATUS_MALFORMED) ||
            (repair != WEIR_STATUS_OK && repair != WEIR_STATUS_MALFORMED) ||
            (source != WEIR_STATUS_OK && source != WEIR_STATUS_MALFORMED)) {
            fprintf(stderr, "datagram %d: %d %d %d\n", i, (int)status, (int)repair, (int)source);
            faults++;
        }
        free(datagram);
    }
    EXPECT(weir_free(h), WEIR_STATUS_OK);
    EXPECT(weir_free(decoder), WEIR_STATUS_OK);
}

/* Two losses in a block of six are repaired, of packets of several lengths; small buffers lose nothing. */
static void repair(void) {
    weir_handle encoder, decoder;
    EXPECT(weir_fec_encoder_new(4, 2, &encoder), WEIR_STATUS_OK);
    EXPECT(weir_fec_decoder_new(4, 1000000000, &decoder), WEIR_STATUS_OK);
    int recovered = 0;
    for (int i = 0; i < 400; i++) {
        uint8_t packet[64], source[70], out[80];
        size_t length = (size_t)(i * 7 % 64), n;
        memset(packet, i, sizeof packet);
        EXPECT(weir_fec_encoder_source(encoder, packet, length, source, length + 5, &n), WEIR_STATUS_BUFFER_TOO_SMALL);
        EXPECT(weir_fec_encoder_source(encoder, packet, length, source, sizeof source, &n), WEIR_STATUS_OK);
        if (i % 4 < 2) { /* the first two of four arrive */
            size_t inner;
            EXPECT(weir_fec_decoder_source(decoder, i, source, n, &inner), WEIR_STATUS_OK);
            if (inner != length || memcmp(source, packet, length) != 0)
                faults++;
        }
        while (weir_fec_encoder_repair(encoder, out, sizeof out, &n) == WEIR_STATUS_OK)
            EXPECT(weir_fec_decoder_repair(decoder, i, out, n), WEIR_STATUS_OK);
        if (i % 4 == 3) {
            for (int lost = i - 1; lost <= i; lost++) {
                size_t wanted = (size_t)(lost * 7 % 64);
                if (wanted > 0)
                    EXPECT(weir_fec_decoder_recovered(decoder, out, wanted - 1, &n), WEIR_STATUS_BUFFER_TOO_SMALL);
                EXPECT(weir_fec_decoder_recovered(decoder, out, sizeof out, &n), WEIR_STATUS_OK);
                memset(packet, lost, sizeof packet);
                if (n != wanted || memcmp(out, packet, n) != 0)
                    faults++;
                recovered++;
            }
            EXPECT(weir_fec_decoder_recovered(decoder, out, sizeof out, &n), WEIR_STATUS_NONE);
        }
    }
    if (recovered != 200)
        faults++;
    EXPECT(weir_free(encoder), WEIR_STATUS_OK);
    EXPECT(weir_free(decoder), WEIR_STATUS_OK);
}

/* Threads on one handle, which is freed under them; and each with handles of its own. */
enum { THREADS = 4, ROUNDS = 500 };
static weir_handle shared;

static void *work(void *argument) {
    size_t own_faults = 0;
    int index = *(int *)argument;
    for (int i = 0; i < ROUNDS / less; i++) {
        weir_sent_packet packet = {.size = sizeof packet, .now_ns = i * 1000000, .bytes = 1000};
        weir_packet_report report = {.number = (uint64_t)i, .arrival_ns = i, .received = 1};
        weir_status status = weir_controller_sent(shared, &packet, NULL);
        own_faults += status != WEIR_STATUS_OK && status != WEIR_STATUS_BAD_HANDLE;
        status = weir_controller_feedback(shared, i * 1000000, &report, 1, sizeof report, -1);
        own_faults += status != WEIR_STATUS_OK && status != WEIR_STATUS_BAD_HANDLE;
        if (index == 0 && i == ROUNDS / less / 2)
            own_faults += weir_free(shared) != WEIR_STATUS_OK;
        weir_handle own;
        weir_setup s = setup();
        own_faults += weir_controller_new(i % 2 ? "nada" : "fixed", NULL, &s, &own) != WEIR_STATUS_OK;
        own_faults += weir_free(own) != WEIR_STATUS_OK;
        own_faults += weir_free(own) != WEIR_STATUS_BAD_HANDLE;
        /* The text is this thread's. */
        char wrong[32];
        snprintf(wrong, sizeof wrong, "thread-%d", index);
        own_faults += weir_controller_new(wrong, NULL, &s, &own) != WEIR_STATUS_UNKNOWN_NAME;
        own_faults += strstr(weir_last_error(), wrong) == NULL;
    }
    return (void *)own_faults;
}

static void threads(void) {
    shared = make("gcc");
    pthread_t ids[THREADS];
    int indices[THREADS];
    for (int i = 0; i < THREADS; i++) {
        indices[i] = i;
        if (pthread_create(&ids[i], NULL, work, &indices[i]) != 0)
            faults++;
    }
    for (int i = 0; i < THREADS; i++) {
        void *own_faults;
        pthread_join(ids[i], &own_faults);
        faults += (int)(size_t)own_faults;
    }
    EXPECT(weir_free(shared), WEIR_STATUS_BAD_HANDLE);
}

/* Every controller by name takes events without a fault. */
static void every_controller(void) {
    size_t count = 0;
    for (const char *name; (name = weir_controller_name(count)) != NULL; count++) {
        weir_handle h = make(name);
        for (int i = 0; i < 200; i++) {
            int64_t now = i * INT64_C(10000000), at;
            weir_sent_packet packet = {.size = sizeof packet, .now_ns = now, .bytes = 1000};
            EXPECT(weir_controller_sent(h, &packet, NULL), WEIR_STATUS_OK);
            if (i >= 5) {
                weir_packet_report report = {
                    .number = (uint64_t)i - 5, .arrival_ns = now - 25000000, .received = i % 9 != 0};
                EXPECT(weir_controller_feedback(h, now, &report, 1, sizeof report, -1), WEIR_STATUS_OK);
            }
            weir_status status = weir_controller_next_timeout(h, &at, NULL);
            if (status == WEIR_STATUS_OK && at <= now) {
                EXPECT(weir_controller_on_timeout(h, now), WEIR_STATUS_OK);
                status = weir_controller_next_timeout(h, &at, NULL);
                if (status == WEIR_STATUS_OK && at <= now) {
                    fprintf(stderr, "%s: a timeout in the past\n", name);
                    faults++;
                }
            }
        }
        weir_target target = {.size = sizeof target};
        EXPECT(weir_controller_target(h, &target), WEIR_STATUS_OK);
        if (target.media_bps < 100000 || target.media_bps > 3000000) {
            fprintf(stderr, "%s: %llu bit/s\n", name, (unsigned long long)target.media_bps);
            faults++;
        }
        EXPECT(weir_free(h), WEIR_STATUS_OK);
    }
    if (count < 20)
        faults++;
    printf("%zu controllers\n", count);
}

int main(int argc, char **argv) {
    if (argc > 1)
        less = atoi(argv[1]);
    if (less < 1 || less > 100)
        return 2;
    handles();
    pointers();
    sizes_and_values();
    bytes();
    repair();
    threads();
    every_controller();
    printf("%d faults\n", faults);
    return faults != 0;
}
