/* flow.c - what flow itself costs a delivery: no socket, no disk, a shell that
 * answers at once and in memory. `make bench` runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <stagger/text.h>

#include "flow/flow.h"

enum { BODY = 1024, BATCH = 512, IN_FLIGHT = 64 * 1024 };

typedef struct shell {
    stg_flow *flow;
    stg_record records[BATCH];
    char body[BODY];
    stg_delivery *ring[IN_FLIGHT]; /* under way, oldest first */
    size_t first, count, most;
    uint64_t deliveries, groups;
    stg_ns now;
} shell;

static void *allocate(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void release(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

static void read_on(shell *s, const stg_action *a)
{
    for (size_t i = 0; i < BATCH; i++)
        s->records[i] = (stg_record){
            .position = a->read.from + i, .bytes = s->body, .size = BODY};
    stg_flow_messages(s->flow, a->read.is_catch_up, a->partition, 0, s->records,
                      BATCH, a->read.from + BATCH, s->now);
}

static void end_oldest(shell *s)
{
    static const stg_end success = {.outcome = {.fault = STG_FAULT_NONE}};
    stg_delivery *d = s->ring[s->first++ % IN_FLIGHT];

    s->count--;
    s->deliveries++;
    s->now += 100;
    stg_flow_ended(s->flow, d, &success, s->now);
}

static void act(shell *s)
{
    stg_action a;

    while (s->count < s->most && stg_flow_next(s->flow, &a, s->now)) {
        if (a.kind == STG_ACTION_READ) {
            read_on(s, &a);
        } else if (a.kind == STG_ACTION_START) {
            s->ring[(s->first + s->count++) % IN_FLIGHT] = a.start.delivery;
        } else if (a.kind == STG_ACTION_STORE) {
            s->groups++;
            stg_flow_stored(s->flow, STG_STORED, s->now);
        }
    }
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double measure(uint32_t lanes, uint64_t deliveries, size_t most)
{
    static const stg_memory memory = {allocate, release, NULL};
    stg_flow_options o = stg_flow_options_default();
    shell *s = calloc(1, sizeof *s);
    stg_policy policy;
    double took;

    stg_policy_parse(&policy, "broadcast budget=ratio:0.2+10/s", NULL);
    stg_flow_new(&s->flow, &memory, &o, 0, NULL);
    stg_flow_assign(s->flow, &(stg_assignment){.begin = 1}, 0, NULL);
    for (uint32_t i = 0; i < lanes; i++) {
        stg_lane_options lane = stg_lane_options_default(&policy);

        stg_flow_add_lane(s->flow, i, &lane, 0, NULL);
    }
    s->most = most;
    stg_flow_start(s->flow, 0);
    took = -seconds();
    while (s->deliveries < deliveries) {
        act(s);
        end_oldest(s);
    }
    took += seconds();
    while (s->count > 0)
        end_oldest(s);
    stg_flow_free(s->flow);
    free(s);
    return took * 1e9 / (double)deliveries;
}

int main(void)
{
    static const uint32_t lanes[] = {1, 3, 50, 1000, 10000};

    puts("flow: CPU of a delivery, 1 KB bodies, reading and storing included");
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++)
        printf(
            "  %6u lanes %8.0f ns\n", lanes[i],
            measure(lanes[i], 2000000, lanes[i] < 156 ? 64 * lanes[i] : 10000));
    return 0;
}
