// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* What lasts: bytes by process and file, calls that have not returned, sleeps. */
#ifndef LASTING_H
#define LASTING_H

#include "arguments.h"
#include "sockets.h"

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
    u32 slot = (u32)(key >> 6) * 2654435761U >> 12;
    for (u32 step = 0; step < 8; step++) {
        struct transfer *at = &shared.transfers[(slot + step) & (TRANSFERS - 1)];
        u64 found = at->key;
        if (!found) {
            found = __sync_val_compare_and_swap(&at->key, 0, key);
            if (!found) {
                at->inode = READ(inode, i_ino);
                at->device = READ(inode, i_sb, s_dev);
                at->mode = READ(inode, i_mode);
                at->process = task->tgid;
                at->pid = own_number(space_at(place), READ(task, group_leader, thread_pid));
                at->space = (place >> 8) & (SPACES - 1);
                found = key;
            }
        }
        if (found == key) {
            add(&at->read, read);
            add(&at->written, written);
            at->time = bpf_ktime_get_ns();
            return 0;
        }
    }
    add(&space_at(place)->transfers_missed, 1);
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
    u32 slot = (u32)(key >> 6) * 2654435761U >> 12;
    struct transfer *at = 0;
    for (u32 step = 0; step < 8; step++) {
        u32 index = (slot + step) & (TRANSFERS - 1);
        if (shared.transfers[index].key == key) {
            at = &shared.transfers[index];
            break;
        }
    }
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
