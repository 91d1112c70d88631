/* What the loader tells of its own: byte counts, calls that have not returned, counters. */
#include "loader.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

static void append(unsigned char **end, u8 tag, u8 flags, const void *data, size_t size)
{
    struct part part = {.tag = tag, .flags = flags, .length = (u16)size};

    memcpy(*end, &part, sizeof part);
    memcpy(*end + sizeof part, data, size);
    *end += sizeof part + size;
}

static void say_record(unsigned char *record, unsigned char *end)
{
    ((struct record *)record)->size = (u16)(end - record);
    say(FRAME_RECORDS, record, (size_t)(end - record));
}

static int tell_transfer(struct transfer *transfer)
{
    unsigned char buffer[512] __attribute__((aligned(8))) = {0};
    unsigned char *end = buffer + sizeof(struct record);
    struct record *record = (struct record *)buffer;

    if (room() < OUT_RESERVE / 2)
        return 0;
    record->type = TYPE_TRANSFER;
    record->sequence = ~0ULL;
    record->time = transfer->time;
    record->pid = record->tid = transfer->pid;
    record->space = transfer->space;
    append(&end, PART_ARGUMENTS, 0, transfer, sizeof *transfer);
    say_record(buffer, end);
    transfer->read = transfer->written = 0;
    __atomic_store_n(&transfer->key, 0, __ATOMIC_RELEASE);
    return 1;
}

/* Byte counts of processes that have ended. Those that ended faster than this looks are told at the end of all. */
void collect_ended(void)
{
    static u64 taken;
    u64 ends = __atomic_load_n(&shared->ends, __ATOMIC_ACQUIRE);

    if (ends - taken > ENDED)
        taken = ends - ENDED;
    for (; taken != ends; taken++) {
        u32 process = shared->ended[taken & (ENDED - 1)];
        for (unsigned i = 0; i < TRANSFERS; i++)
            if (shared->transfers[i].key && shared->transfers[i].process == process &&
                !tell_transfer(&shared->transfers[i]))
                return;
    }
}

/* All byte counts of a space. */
void collect_transfers(unsigned space)
{
    for (unsigned i = 0; i < TRANSFERS; i++)
        if (shared->transfers[i].key && shared->transfers[i].space == space && !tell_transfer(&shared->transfers[i]))
            return;
}

void tell_pending(unsigned space)
{
    for (unsigned i = 0; i < PENDINGS; i++) {
        struct pending *pending = &shared->pending[i];
        unsigned char buffer[512] __attribute__((aligned(8))) = {0};
        unsigned char *end = buffer + sizeof(struct record);
        if (!pending->task || pending->space != space || room() < sizeof buffer + 4096)
            continue;
        struct record *record = (struct record *)buffer;
        record->type = TYPE_PENDING;
        record->flags = FLAG_ENTERED;
        record->sequence = ~0ULL;
        record->time = pending->time;
        record->pid = pending->pid;
        record->tid = pending->tid;
        record->number = pending->number;
        record->space = space;
        append(&end, PART_ARGUMENTS, 0, pending->arguments, sizeof pending->arguments);
        struct call *call = &shared->calls[pending->number & (CALLS - 1)];
        if (pending->claimed > 0 && pending->claimed <= CLAIM_BYTES) {
            u8 flags = pending->claimed >= CLAIM_BYTES - 1 ? PART_CLAIM | PART_CUT : PART_CLAIM;
            append(&end, call->path ? PART_PATH : PART_ADDRESS, flags, pending->claim, pending->claimed);
        }
        say_record(buffer, end);
    }
}

/* Runs of the kernel part that the kernel left out; -1 where it does not tell. */
long long misses(void)
{
    struct bpf_program *program;
    long long sum = 0;

    bpf_object__for_each_program(program, object)
    {
        struct bpf_prog_info info = {0};
        u32 size = sizeof info;
        if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) != 0)
            return -1;
        sum += (long long)info.recursion_misses;
    }
    return sum;
}

static size_t bitmap_text(char *text, size_t room, const char *name, const u64 *bitmap)
{
    size_t used = (size_t)snprintf(text, room, "%s ", name);

    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(text + used, room - used, "%016llx", bitmap[i]);
    return used + (size_t)snprintf(text + used, room - used, "\n");
}

void tell_counters(unsigned number, long long missed)
{
    const struct space *space = &shared->spaces[number];
    static char text[8192];
    static const char *const names[RINGS] = {"marks", "vital", "bulk"};
    u64 matched = 0;
    size_t used = 0;

    for (int i = 0; i < STRIPES; i++)
        matched += shared->matched[i][0];
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "space %u\ncalls %llu\nmatched %llu\nmissed %lld\ntransfers_missed %llu\npending_missed "
                             "%llu\nstorage_missed %llu\ngate %u\nlevel %u\n",
                             number, matched, space->sequence, missed, space->transfers_missed, space->pending_missed,
                             space->storage_missed, space->gate, space->level);
    for (int i = 0; i < RINGS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "sent_%s %llu\ndropped_%s %llu\n", names[i],
                                 space->sent[i], names[i], space->dropped[i]);
    used += bitmap_text(text + used, sizeof text - used, "entered", space->entered);
    used += bitmap_text(text + used, sizeof text - used, "returned", space->returned);
    used += bitmap_text(text + used, sizeof text - used, "entered32", space->compat);
    used += bitmap_text(text + used, sizeof text - used, "returned32", space->compat_returned);
    say(FRAME_COUNTERS, text, used);
}
