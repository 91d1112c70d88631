// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* Maps and memory of the kernel part, and the question whose call it is: of which recorded pid namespace. */
#ifndef SPACE_H
#define SPACE_H

#include "record.h"

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define READ BPF_CORE_READ
#define OFFSET_MASK 0x3fff
#define DATA_BYTES 32680
#define RECORD_MAX 0x6000
#define PATH_STEPS 64
#define NAMESPACE_DEPTH 8
#define NAMESPACE_FLAGS 0x7E020000ULL /* CLONE_NEW..., <linux/sched.h> */
#define MAX_ERRNO 4095

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define FMODE_WRITE 2
#define O_CREAT 0100
#define AT_FDCWD -100
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define EPERM 1
#define ENOSYS 38

struct scratch {
    u32 offset;
    u32 which; /* its index, set by begin() */
    u32 place; /* what find_place() said, set by begin() */
    u32 spare;
    u64 arguments[8];
    u8 data[DATA_BYTES];
};

/* One for each program: the kernel lets a program run once at a time on a processor, but two may interleave. */
enum { SCRATCH_ENTER, SCRATCH_EXIT, SCRATCH_EXEC, SCRATCH_FORK, SCRATCH_END, SCRATCHES };

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, SCRATCHES);
    __type(key, u32);
    __type(value, struct scratch);
} scratches SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 256 << 10);
} marks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4 << 20);
} vital SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 16 << 20); /* the loader may set another size */
} bulk SEC(".maps");

struct tracked {
    u32 entered; /* number + 1 of the call that was begun */
    u32 spare;
    u64 claims[2]; /* digests of its paths as they were then */
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct tracked);
} tracked SEC(".maps");

struct shared shared;

static __always_inline void add(u64 *counter, u64 amount)
{
    __sync_fetch_and_add(counter, amount);
}

static __always_inline struct upid number_at(struct pid *pid, u32 level)
{
    struct upid found = {};
    void *at = (void *)pid + __builtin_preserve_field_info(((struct pid *)0)->numbers, 0);

    bpf_probe_read_kernel(&found, sizeof found, at + level * sizeof found);
    return found;
}

/* Is the current task in that space? 0: no. Else 1 + how deep below the recorded namespace. */
__noinline int is_inside(u32 index)
{
    struct space *space = &shared.spaces[index & (SPACES - 1)];
    struct task_struct *task = bpf_get_current_task_btf();
    struct pid *pid = task->thread_pid;
    u32 inode = space->inode;

    if (inode == 0 || !pid)
        return 0;
    u32 deepest = pid->level;
    if (space->pointer) {
        u32 level = space->level;
        if (level > deepest)
            return 0;
        struct upid number = number_at(pid, level);
        if ((u64)number.ns != space->pointer)
            return 0;
        /* Both the number and the address of a namespace that died may come again; its init's start can't. */
        if (READ(number.ns, ns.inum) != inode || READ(number.ns, child_reaper, start_boottime) != space->started)
            return 0;
        return 1 + deepest - level;
    }
    for (u32 level = 1; level <= NAMESPACE_DEPTH; level++) {
        if (level > deepest)
            return 0;
        struct upid number = number_at(pid, level);
        if (READ(number.ns, ns.inum) != inode)
            continue;
        space->level = level;
        space->started = READ(number.ns, child_reaper, start_boottime);
        __sync_val_compare_and_swap(&space->pointer, 0, (u64)number.ns);
        return 1 + deepest - level;
    }
    return 0;
}

/* Where the current task belongs: 0: to no recorded namespace; else the space's index << 8, plus 1 + how deep below. */
__noinline int find_place(void)
{
    struct task_struct *task = bpf_get_current_task_btf();
    u32 used = shared.used;
    struct pid *pid = task->thread_pid;

    if (!used || !pid || pid->level == 0)
        return 0;
    for (u32 index = 0; index < SPACES; index++) {
        if (index >= used)
            return 0;
        u32 deep = is_inside(index);
        if (deep)
            return index << 8 | (deep & 0xff);
    }
    return 0;
}

static __always_inline struct space *space_at(u32 place)
{
    return &shared.spaces[(place >> 8) & (SPACES - 1)];
}

static __always_inline u32 own_number(struct space *space, struct pid *pid)
{
    u32 level = space->level;

    if (READ(pid, level) < level)
        return 0;
    struct upid number = number_at(pid, level);
    return (u64)number.ns == space->pointer ? number.nr : 0;
}

#endif
