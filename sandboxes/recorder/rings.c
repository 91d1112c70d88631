/* The rings of the kernel part, read in place, and records on their way to stdout. */
#include "loader.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUSY (1U << 31)    /* BPF_RINGBUF_BUSY_BIT, <linux/bpf.h> */
#define DISCARD (1U << 30) /* BPF_RINGBUF_DISCARD_BIT */
#define RECORD_HEAD 8      /* BPF_RINGBUF_HDR_SZ */

unsigned long drained;

int view(struct ring_view *ring, int map, unsigned long size)
{
    unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    unsigned char *read_write = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    unsigned char *read_only = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, map, (off_t)page);

    if (read_write == MAP_FAILED || read_only == MAP_FAILED)
        return -1;
    ring->consumed = (volatile unsigned long *)read_write;
    ring->produced = (volatile unsigned long *)read_only;
    ring->data = read_only + page; /* mapped twice in a row: a record never wraps */
    ring->mask = size - 1;
    return 0;
}

/* Copy a record, leaving out the values of environment variables. */
static unsigned copy_record(unsigned char *to, const unsigned char *from, unsigned size)
{
    const struct record *record = (const struct record *)from;
    unsigned at = sizeof *record, end = sizeof *record;

    if (record->type != TYPE_EXEC || size < sizeof *record) {
        memcpy(to, from, size);
        return size;
    }
    memcpy(to, from, sizeof *record);
    while (at + sizeof(struct part) <= size) {
        struct part part;
        memcpy(&part, from + at, sizeof part);
        at += sizeof part;
        if (part.length > size - at)
            break;
        unsigned char *data = to + end + sizeof part;
        unsigned kept = 0;
        if (part.tag == PART_ENVIRONMENT) {
            int in_name = 1;
            for (unsigned i = 0; i < part.length; i++) {
                unsigned char byte = from[at + i];
                if (byte == '=')
                    in_name = 0;
                if (in_name || byte == '\0')
                    data[kept++] = byte;
                if (byte == '\0')
                    in_name = 1;
            }
        } else {
            memcpy(data, from + at, part.length);
            kept = part.length;
        }
        at += part.length;
        part.length = (u16)kept;
        memcpy(to + end, &part, sizeof part);
        end += (unsigned)sizeof part + kept;
    }
    ((struct record *)to)->size = (u16)end;
    return end;
}

/* Move what a ring holds to `out`, at most one batch. True when the ring was read to its end. */
int drain(struct ring_view *ring)
{
    struct frame head = {.kind = FRAME_RECORDS};
    unsigned long at = *ring->consumed;
    unsigned long produced = __atomic_load_n(ring->produced, __ATOMIC_ACQUIRE);

    if (at == produced)
        return 1;
    if (room() < BATCH_BYTES + OUT_RESERVE)
        return 0;
    unsigned start = out_to, end = out_to + (unsigned)sizeof head;
    int whole = 1;
    while (at < produced) {
        unsigned char *entry = ring->data + (at & ring->mask);
        u32 length = __atomic_load_n((u32 *)entry, __ATOMIC_ACQUIRE);
        if (length & BUSY)
            break; /* being written: it and what follows come next time */
        u32 size = length & ~DISCARD;
        if (end - start + size > BATCH_BYTES) {
            whole = 0;
            break;
        }
        if (!(length & DISCARD))
            end += copy_record(out + end, entry + RECORD_HEAD, size);
        at += (size + RECORD_HEAD + 7UL) / 8 * 8;
    }
    __atomic_store_n(ring->consumed, at, __ATOMIC_RELEASE);
    drained += end - start;
    head.size = end - start - (u32)sizeof head;
    if (head.size > 0) {
        memcpy(out + start, &head, sizeof head);
        out_to = end;
    }
    return whole;
}
