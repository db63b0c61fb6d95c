/* meter.h - what an operation costs, in ns, next to what it would cost bare.
 *
 * Both are run in turn, in many short rounds, so that whatever else the machine
 * does hits them alike; the cost is the median over the rounds of the
 * difference. A goal that is missed is said, and fails nothing: the machine may
 * be busy, or slow. */
#ifndef BENCH_METER_H
#define BENCH_METER_H

#include <stddef.h>

/* Does its thing n times. */
typedef void meter_work(size_t n);

/* The heading of the lines that follow. */
void meter_begin(const char *title);

/* Measures, and prints a line. bare may be NULL: nothing to subtract. goal is
 * the most that is wanted, 0 for none. */
void meter_compare(const char *name, unsigned goal, meter_work *bare,
                   meter_work *work);

/* A line for a number that needs no measuring. */
void meter_number(const char *name, unsigned long number, const char *unit,
                  unsigned long goal);

/* Runs work(n) in this thread and in another one at once. The other one is
 * there between meter_pair_begin() and meter_pair_end(). */
void meter_pair_begin(void);
void meter_pair(meter_work *work, size_t n);
void meter_pair_end(void);

/* Keeps a compiler from knowing what is behind p, or that nobody looks. */
static inline void meter_hide(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

#endif
