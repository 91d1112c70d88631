// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* What lasts: bytes by process and file, calls that have not returned, sleeps. */
#ifndef LASTING_H
#define LASTING_H

#include "arguments.h"
#include "sockets.h"

/* Where a process and file begin to be looked for: the bits of a product that all of the key goes into. */
static __always_inline u32 transfer_slot(u64 key)
{
    return (u32)((key >> 6) * 0x9E3779B97F4A7C15ULL >> 40); /* 2^64 by the golden ratio: Knuth, TAOCP 3, 6.4 */
}

/* A file that is closed leaves a hole: what is there may stand behind some, and must not be counted anew before it. */
static __always_inline struct transfer *find_transfer(u64 key)
{
    u32 slot = transfer_slot(key);

    for (u32 step = 0; step < TRANSFER_STEPS; step++) {
        struct transfer *at = &shared.transfers[(slot + step) & (TRANSFERS - 1)];
        if (at->key == key)
            return at;
    }
    return 0;
}

/* Count bytes by process and file: for sockets, and regular files that are open for writing. */
__noinline int count_bytes(u32 number, u64 read, u64 written, u32 place)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct file *file = file_of(task, number);

    if (!file)
        return 0;
    struct inode *inode = READ(file, f_inode);
    u32 mode = READ(inode, i_mode) & S_IFMT;
    if (mode != S_IFSOCK && !(mode == S_IFREG && (READ(file, f_mode) & FMODE_WRITE)))
        return 0;
    u64 key = ((u64)task->tgid << 42) ^ (u64)inode;
    struct transfer *at = find_transfer(key);
    u32 slot = transfer_slot(key);
    for (u32 step = 0; step < TRANSFER_STEPS && !at; step++) {
        struct transfer *free = &shared.transfers[(slot + step) & (TRANSFERS - 1)];
        u64 found = __sync_val_compare_and_swap(&free->key, 0, key);
        if (found && found != key) /* the same one: another thread was quicker */
            continue;
        if (!found) {
            free->inode = READ(inode, i_ino);
            free->device = READ(inode, i_sb, s_dev);
            free->mode = READ(inode, i_mode);
            free->process = task->tgid;
            free->pid = own_number(space_at(place), READ(task, group_leader, thread_pid));
            free->space = (place >> 8) & (SPACES - 1);
        }
        at = free;
    }
    if (!at) {
        add(&space_at(place)->transfers_missed, 1);
        return 0;
    }
    add(&at->read, read);
    add(&at->written, written);
    at->time = bpf_ktime_get_ns();
    return 0;
}

/* At close: what went through this file by this process, told with its path or addresses. */
__noinline int tell_transfer(u64 number, u32 place)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct file *file = file_of(task, number);

    if (!file)
        return 0;
    struct inode *inode = READ(file, f_inode);
    u64 key = ((u64)task->tgid << 42) ^ (u64)inode;
    struct transfer *at = find_transfer(key);
    struct scratch *s = at ? scratch_of(SCRATCH_ENTER) : 0;
    if (!s)
        return 0;
    begin(s, SCRATCH_ENTER, TYPE_TRANSFER, place);
    struct transfer *out = room(s);
    *out = *at;
    put(s, PART_ARGUMENTS, 0, sizeof *out);
    if ((READ(inode, i_mode) & S_IFMT) == S_IFSOCK)
        put_socket(s->which, number);
    else
        put_file(s, PART_FILE, file);
    at->read = at->written = 0;
    at->key = 0;
    send(s, RING_BULK);
    return 0;
}

static __always_inline void note_pending(struct task_struct *task, u64 number, const u64 *arguments, struct call *call,
                                         u32 place)
{
    u64 id = (u32)task->pid;

    for (u32 step = 0; step < 4; step++) {
        struct pending *at = &shared.pending[(id + step) & (PENDINGS - 1)];
        if (at->task != id && __sync_val_compare_and_swap(&at->task, 0, id) != 0)
            continue;
        at->time = bpf_ktime_get_ns();
        at->number = number;
        at->space = (place >> 8) & (SPACES - 1);
        at->tid = own_number(space_at(place), task->thread_pid);
        at->pid = own_number(space_at(place), READ(task, group_leader, thread_pid));
        for (int i = 0; i < 4; i++)
            at->arguments[i] = arguments[i];
        at->claimed = 0;
        if (call->path) {
            long length = bpf_probe_read_user_str(at->claim, CLAIM_BYTES, (void *)argument(arguments, call->path));
            at->claimed = length > 0 ? length - 1 : 0;
        } else if (call->address) {
            u64 length = argument(arguments, call->address + 1);
            if (length > 28)
                length = 28;
            asm volatile("%0 &= 31" : "+r"(length));
            if (length && !bpf_probe_read_user(at->claim, length, (void *)argument(arguments, call->address)))
                at->claimed = length;
        }
        return;
    }
    add(&space_at(place)->pending_missed, 1);
}

static __always_inline void forget_pending(struct task_struct *task)
{
    u64 id = (u32)task->pid;

    for (u32 step = 0; step < 4; step++) {
        struct pending *at = &shared.pending[(id + step) & (PENDINGS - 1)];
        if (at->task == id) {
            at->task = 0;
            return;
        }
    }
}

#endif
