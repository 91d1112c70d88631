// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* The kernel part of the recorder: what the processes of some pid namespaces do, told from where they can't
 * reach.
 *
 * What stands in user memory can be changed by a second thread while the kernel reads it, so after a call that
 * succeeded its paths and addresses are read from the kernel's own objects; strings from user memory are told of
 * failed calls, and marked as claims. A call that a seccomp filter answers never gets to sys_enter, so calls are
 * decoded from the registers at sys_exit.
 *
 * This file has the two places where system calls begin and end; the headers have the rest:
 *   space.h      maps, shared memory, and whose call it is      arguments.h  what calls are given
 *   write.h      records, strings, paths                        lasting.h    byte counts, calls under way
 *   sockets.h    addresses                                      processes.h  programs begun, children, ends
 *
 * Needs Linux 5.12 (atomics with results). The verifier must be able to follow all of it: loops are bounded, offsets
 * are kept in map memory (what has to be taken for unknown need not be followed along every path), and the larger
 * pieces are global functions, which are checked once and not at each of their calls; these take an index instead of
 * a pointer, and numbers instead of kernel pointers.
 */
#include "lasting.h"
#include "processes.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Whole seconds that a call sleeps at least; absolute times are on clocks of which only the monotonic one is read. */
static __always_inline s64 seconds_slept(const u64 *arguments, u8 kind, u8 address)
{
    s64 time[2] = {};

    if (kind == KIND_WAIT) {
        s32 wanted = (s32)argument(arguments, address);
        return wanted > 0 ? wanted / 1000U : 0;
    }
    if (bpf_probe_read_user(time, sizeof time, (void *)argument(arguments, address)))
        return 0;
    if (kind == KIND_SLEEP_CLOCK && (arguments[1] & 1)) { /* TIMER_ABSTIME */
        if (arguments[0] != 1)
            return 1;
        s64 left = time[0] * 1000000000LL + time[1] - (s64)bpf_ktime_get_ns();
        return left > 0 ? ((u64)left + 500000000ULL) / 1000000000ULL : 0; /* some time has passed since it was said */
    }
    return time[0];
}

static __always_inline int is_sleep(u8 kind)
{
    return kind == KIND_SLEEP || kind == KIND_SLEEP_CLOCK || kind == KIND_WAIT;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long id)
{
    struct task_struct *task = bpf_get_current_task_btf();
    u32 place = find_place();

    if (!place)
        return 0;
    struct space *space = space_at(place);
    add(&shared.matched[bpf_get_smp_processor_id() & (STRIPES - 1)][0], 1);
    if (is_compat(task)) {
        seen(space->compat, id);
        return 0;
    }
    if (id & 0x40000000)
        return 0;
    seen(space->entered, id);
    if ((u64)id >= CALLS)
        return 0;
    struct scratch *s = scratch_of(SCRATCH_ENTER);
    if (!s)
        return 0;
    struct call *call = &shared.calls[id & (CALLS - 1)];
    u64 *arguments = s->arguments;
    u8 kind = call->kind;
    if (kind == KIND_CLOSE) {
        read_arguments(arguments, regs, 0);
        tell_transfer(arguments[0], place);
        return 0;
    }
    if (call->flags & (CALL_TRACKED | CALL_COMPARED)) {
        read_arguments(arguments, regs, 0);
        struct tracked *found = bpf_task_storage_get(&tracked, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
        if (!found) {
            add(&space->storage_missed, 1);
        } else {
            found->entered = id + 1;
            if (call->flags & CALL_COMPARED) {
                found->claims[0] = call->path ? digest_of(argument(arguments, call->path)) : 0;
                found->claims[1] = call->path2 ? digest_of(argument(arguments, call->path2)) : 0;
            }
        }
    }
    if (call->flags & CALL_BLOCKING) {
        read_arguments(arguments, regs, 0);
        note_pending(task, id, arguments, call, place);
    }
    if (kind == KIND_END || is_sleep(kind)) {
        s64 seconds = 0;
        read_arguments(arguments, regs, 0);
        if (kind != KIND_END) {
            seconds = seconds_slept(arguments, kind, call->address);
            if (seconds < (call->flags & CALL_WAITS ? WAIT_SECONDS : 1))
                return 0;
            if (call->flags & CALL_WAITS && __sync_fetch_and_add(&space->waits, 1) >= WAITS_MAX)
                return 0;
        }
        struct record *r = begin(s, SCRATCH_ENTER, TYPE_CALL, place);
        r->number = id;
        r->flags |= FLAG_ENTERED;
        r->result = seconds;
        put_arguments(s, call->arguments);
        send(s, RING_BULK);
    }
    return 0;
}

__noinline int tell_compat(u32 place, u64 number, s64 result)
{
    struct scratch *s = scratch_of(SCRATCH_EXIT);
    struct space *space = space_at(place);

    if (!s)
        return 0;
    struct record *r = begin(s, SCRATCH_EXIT, TYPE_CALL, place);
    r->flags |= FLAG_COMPAT;
    if (!was_seen(space->compat, number))
        r->flags |= FLAG_DENIED;
    seen(space->compat_returned, number);
    r->number = number;
    r->result = result;
    put_arguments(s, 6);
    send(s, RING_BULK);
    return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *regs, long result)
{
    struct task_struct *task = bpf_get_current_task_btf();
    u32 place = find_place();

    if (!place)
        return 0;
    struct scratch *s = scratch_of(SCRATCH_EXIT);
    if (!s)
        return 0;
    struct space *space = space_at(place);
    u64 *arguments = s->arguments;
#if defined(__TARGET_ARCH_x86)
    u64 id = regs->orig_ax;
#else
    u64 id = regs->syscallno;
#endif
    if ((s64)id < 0)
        return 0; /* a return from a signal handler, or a call that a tracer skipped */
    if (is_compat(task)) {
        read_arguments(arguments, regs, 1);
        tell_compat(place, id, result);
        return 0;
    }
    u8 flags = 0;
    if (id & 0x40000000) {
        flags |= FLAG_X32;
        id &= CALLS - 1;
    } else {
        /* Before the gate's mark a call may return that was begun before anything was recorded; the first process
         * (the warden) waits in one. */
        if (space->gate && !was_seen(space->returned, id)) {
            if (was_seen(space->entered, id) || own_number(space, task->thread_pid) != 1)
                seen(space->returned, id);
        }
        if (!was_seen(space->entered, id) && was_seen(space->returned, id))
            flags |= FLAG_DENIED;
    }
    struct call call = {};
    if (id < CALLS)
        call = shared.calls[id & (CALLS - 1)];
    int failed = result < 0 && result >= -MAX_ERRNO;
    u32 ring = call.flags & CALL_VITAL ? RING_VITAL : RING_BULK;

    if (flags) { /* whatever it is: one that is answered by a filter every time is worth a line */
        if (call.kind == KIND_NONE) {
            call.kind = KIND_PLAIN;
            call.arguments = 6;
        }
    } else if (call.flags & CALL_TRACKED) {
        struct tracked *found = bpf_task_storage_get(&tracked, task, 0, 0);
        if (!found || found->entered != id + 1)
            flags |= FLAG_DENIED;
        if (found)
            found->entered = 0;
    }
    if (call.flags & CALL_BLOCKING)
        forget_pending(task);
    read_arguments(arguments, regs, 0);
    if (call.flags & CALL_HOW) { /* struct open_how begins with them: <linux/openat2.h> */
        u64 how = 0;
        bpf_probe_read_user(&how, sizeof how, (void *)arguments[2]);
        arguments[2] = how;
    }
    if (call.flags & CALL_SENDS && result > 0)
        count_bytes(arguments[0], 0, result, place);
    /* An event loop wakes itself so, a thousand times a second; no more than a write to a pipe, which is no line either. */
    if (call.kind == KIND_SOCKET && call.flags & CALL_SENDS && result > 0 && !flags && !arguments[4] &&
        is_nameless_pair(arguments[0]))
        return 0;

    switch (call.kind) {
    case KIND_NONE:
    case KIND_END:
    case KIND_SLEEP:
    case KIND_SLEEP_CLOCK:
    case KIND_WAIT:
    case KIND_CLOSE:
        if (!flags)
            return 0;
        break;
    case KIND_READ:
        if (!failed && result > 0)
            count_bytes(arguments[0], result, 0, place);
        return 0;
    case KIND_WRITE:
        if (!failed && result > 0)
            count_bytes(arguments[0], 0, result, place);
        return 0;
    case KIND_EXEC:
        if (!failed)
            return 0;
        break;
    case KIND_MAP: /* PROT_WRITE; MAP_SHARED or MAP_SHARED_VALIDATE and not MAP_ANONYMOUS */
        if (!(arguments[2] & 2) || !(arguments[3] & 1) || (arguments[3] & 0x20))
            return 0;
        break;
    case KIND_PROCESS:
        if (!is_wanted_option(arguments[0]))
            return 0;
        break;
    case KIND_CLONE:
        if (!failed && !(arguments[0] & NAMESPACE_FLAGS))
            return 0;
        break;
    case KIND_CLONE3: {
        u64 wanted = 0;
        bpf_probe_read_user(&wanted, sizeof wanted, (void *)arguments[0]);
        if (!(wanted & NAMESPACE_FLAGS) && (!failed || result == -ENOSYS))
            return 0;
        arguments[1] = wanted;
        break;
    }
    }

    struct record *r = begin(s, SCRATCH_EXIT, TYPE_CALL, place);
    r->flags |= flags;
    r->number = id;
    r->result = result;
    put_arguments(s, call.arguments);

    if (call.kind == KIND_OPEN && !failed) {
        struct file *file = file_of(task, result);
        if (file) {
            struct inode *inode = READ(file, f_inode);
            u64 number = READ(inode, i_ino);
            u32 device = READ(inode, i_sb, s_dev);
            put_identity(s, inode);
            put_file(s, PART_FILE, file);
            /* What is made before the gate's mark was planted. */
            if (is_decoy(number, device, place, !space->gate && (READ(inode, i_mode) & S_IFMT) == S_IFREG &&
                                              (READ(file, f_mode) & FMODE_WRITE))) {
                r->flags |= FLAG_DECOY;
                ring = RING_VITAL;
            }
        } else {
            call.kind = KIND_PLAIN; /* another thread has closed it: all that is left is the claim */
        }
    }
    if (call.path && (failed || (call.kind != KIND_OPEN && call.kind != KIND_DIRECTORY))) {
        u32 offset = s->offset & OFFSET_MASK;
        u64 directory = call.base ? argument(arguments, call.base) : (u64)AT_FDCWD;
        put_claimed_path(s->which, argument(arguments, call.path), directory, 0);
        u8 *path = &s->data[offset + sizeof(struct part)];
        u32 length = s->offset - offset;
        if (call.kind == KIND_STAT && !is_telltale(path))
            return 0;
        if (call.kind == KIND_ACCESS && is_mark(path, length) && (r->pid == 1 || !space->gate)) {
            if (r->pid != 1)
                space->gate = 1;
            r->type = TYPE_MARK;
            ring = RING_MARKS;
        }
    }
    if (call.kind == KIND_DIRECTORY && !failed) {
        struct fs_struct *fs = READ(task, fs);
        put_path_in(s->which, PART_FILE, (u64)READ(fs, pwd.mnt), (u64)READ(fs, pwd.dentry));
    }
    if (call.path2) {
        u64 directory = call.base2 ? argument(arguments, call.base2) : (u64)AT_FDCWD;
        put_claimed_path(s->which, argument(arguments, call.path2), directory, 1);
    }
    if (call.flags & CALL_COMPARED) {
        struct tracked *found = bpf_task_storage_get(&tracked, task, 0, 0);
        if (found && found->entered == id + 1 &&
            ((call.path && found->claims[0] != digest_of(argument(arguments, call.path))) ||
             (call.path2 && found->claims[1] != digest_of(argument(arguments, call.path2)))))
            put(s, PART_CHANGED, 0, 0);
        if (found)
            found->entered = 0;
    }
    if (call.file)
        put_descriptor(s->which, argument(arguments, call.file), 0);
    if (call.file2)
        put_descriptor(s->which, argument(arguments, call.file2), 1);
    if (call.kind == KIND_SOCKET || call.kind == KIND_MESSAGE || call.kind == KIND_MESSAGES) {
        put_socket(s->which, arguments[0]);
        if (call.address)
            put_address(s->which, argument(arguments, call.address), argument(arguments, call.address + 1));
        else if (call.kind == KIND_MESSAGE)
            put_message(s, arguments[1]);
        else if (call.kind == KIND_MESSAGES)
            for (u32 i = 0; i < 8; i++) { /* struct mmsghdr is 64 bytes long */
                if (i >= arguments[2])
                    break;
                put_message(s, arguments[1] + i * 64);
            }
    }
    send(s, ring);
    return 0;
}
