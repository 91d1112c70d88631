// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* The life of processes: programs begun, children, ends. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "lasting.h"

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old, struct linux_binprm *program)
{
    u32 place = find_place();

    if (!place)
        return 0;
    struct scratch *s = scratch_of(SCRATCH_EXEC);
    if (!s)
        return 0;
    struct record *r = begin(s, SCRATCH_EXEC, TYPE_EXEC, place);
    struct mm_struct *mm = task->mm;
    struct file *file = READ(mm, exe_file);
    if (file) {
        put_identity(s, READ(file, f_inode));
        put_file(s, PART_FILE, file);
    }
    const char *name = READ(program, filename), *interpreter = READ(program, interp);
    put_kernel_string(s, PART_REQUESTED, name);
    if (interpreter != name)
        put_kernel_string(s, PART_INTERPRETER, interpreter);
    struct fs_struct *fs = READ(task, fs);
    put_path_in(s->which, PART_DIRECTORY, (u64)READ(fs, pwd.mnt), (u64)READ(fs, pwd.dentry));

    u64 start = READ(mm, arg_start), length = READ(mm, arg_end) - start;
    u32 cut = length > ARGV_BYTES - 1 ? PART_CUT : 0;
    if (cut)
        length = ARGV_BYTES - 1;
    asm volatile("%0 &= 0x1fff" : "+r"(length));
    if (!bpf_probe_read_user(room(s), length, (void *)start))
        put(s, PART_ARGV, cut, length);
    else
        r->flags |= FLAG_UNREADABLE;

    start = READ(mm, env_start);
    length = READ(mm, env_end) - start;
    cut = length > ENVIRONMENT_BYTES - 1 ? PART_CUT : 0;
    if (cut)
        length = ENVIRONMENT_BYTES - 1;
    asm volatile("%0 &= 0xfff" : "+r"(length));
    if (!bpf_probe_read_user(room(s), length, (void *)start))
        put(s, PART_ENVIRONMENT, cut, length);
    send(s, RING_VITAL);
    return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *task, struct task_struct *child)
{
    u32 place = find_place();

    if (!place)
        return 0;
    struct scratch *s = scratch_of(SCRATCH_FORK);
    if (!s)
        return 0;
    struct record *r = begin(s, SCRATCH_FORK, TYPE_FORK, place);
    int thread = task->tgid == child->tgid;
    r->number = thread;
    r->result = own_number(space_at(place), READ(child, thread_pid));
    send(s, thread ? RING_BULK : RING_VITAL);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_end, struct task_struct *task)
{
    u32 place = find_place();

    if (!place)
        return 0;
    forget_pending(task);
    if (READ(task, signal, live.counter) != 0)
        return 0;
    shared.ended[__sync_fetch_and_add(&shared.ends, 1) & (ENDED - 1)] = task->tgid; /* the loader takes its counts */
    struct scratch *s = scratch_of(SCRATCH_END);
    if (!s)
        return 0;
    struct record *r = begin(s, SCRATCH_END, TYPE_EXIT, place);
    int of_group = READ(task, signal, group_exit_code);
    r->result = of_group ? of_group : task->exit_code;
    send(s, RING_VITAL);
    return 0;
}

#endif
