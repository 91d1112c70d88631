/* What the units of the loader share. */
#ifndef LOADER_H
#define LOADER_H

#define _GNU_SOURCE
#include "record.h"

#include <bpf/libbpf.h>
#include <stddef.h>

#define OUT_BYTES (4U << 20)
#define OUT_RESERVE 65536U /* always left for what is not a record */
#define BATCH_BYTES (1U << 18)

struct ring_view {
    volatile unsigned long *consumed;
    volatile unsigned long *produced;
    unsigned char *data;
    unsigned long mask;
};

/* recorder.c */
extern struct shared *shared;
extern struct bpf_object *object;

/* out.c: stdout, which never blocks */
extern unsigned char out[OUT_BYTES];
extern unsigned out_from, out_to;
extern int out_broken;
void flush(void);
unsigned room(void);
void say(u8 kind, const void *data, size_t size);
int fail(const char *what, int error);
int keep_complaint(enum libbpf_print_level level, const char *format, va_list arguments);

/* calls.c: what to record, by the machine's own call numbers */
void choose_calls(void);

/* rings.c: what the kernel part left there; bytes of records taken since it was last set to 0 */
extern unsigned long drained;
int view(struct ring_view *ring, int map, unsigned long size);
int drain(struct ring_view *ring);

/* totals.c: what is told at the end, or when asked */
void collect_ended(void);
void collect_transfers(unsigned space);
void tell_pending(unsigned space);
void tell_counters(unsigned space, long long missed);
long long misses(void);

#endif
