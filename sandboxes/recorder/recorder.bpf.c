// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* The kernel part of the recorder: what the processes of one pid namespace do, told from where they can't reach.
 *
 * What stands in user memory can be changed by a second thread while the kernel reads it, so after a call that
 * succeeded its paths and addresses are read from the kernel's own objects; strings from user memory are told of
 * failed calls, and marked as claims. A call that a seccomp filter answers never gets to sys_enter, so calls are
 * decoded from the registers at sys_exit.
 *
 * Needs Linux 5.12 (atomics with results). The verifier must be able to follow all of it: loops are bounded, offsets
 * are kept in map memory (what has to be taken for unknown need not be followed along every path), and the larger
 * pieces are global functions, which are checked once and not at each of their calls; these take an index instead of
 * a pointer, and numbers instead of kernel pointers.
 */
#include "record.h"

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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

/* ---- whose call is it ---- */

static __always_inline struct upid number_at(struct pid *pid, u32 level)
{
    struct upid found = {};
    void *at = (void *)pid + __builtin_preserve_field_info(((struct pid *)0)->numbers, 0);

    bpf_probe_read_kernel(&found, sizeof found, at + level * sizeof found);
    return found;
}

/* 0: not the target's. Else 1 + how deep below the target's namespace. */
static __always_inline u32 matches(struct task_struct *task)
{
    u32 inode = shared.inode;
    if (inode == 0)
        return 0;
    struct pid *pid = task->thread_pid;
    if (!pid)
        return 0;
    u32 deepest = pid->level;
    if (deepest == 0)
        return 0;
    if (shared.pointer) {
        u32 level = shared.level;
        if (level > deepest)
            return 0;
        struct upid number = number_at(pid, level);
        if ((u64)number.ns != shared.pointer)
            return 0;
        /* Both the number and the address of a namespace that died may come again; its init's start can't. */
        if (READ(number.ns, ns.inum) != inode || READ(number.ns, child_reaper, start_boottime) != shared.started)
            return 0;
        return 1 + deepest - level;
    }
    for (u32 level = 1; level <= NAMESPACE_DEPTH; level++) {
        if (level > deepest)
            return 0;
        struct upid number = number_at(pid, level);
        if (READ(number.ns, ns.inum) != inode)
            continue;
        shared.level = level;
        shared.started = READ(number.ns, child_reaper, start_boottime);
        __sync_val_compare_and_swap(&shared.pointer, 0, (u64)number.ns);
        return 1 + deepest - level;
    }
    return 0;
}

static __always_inline u32 own_number(struct pid *pid)
{
    u32 level = shared.level;

    if (READ(pid, level) < level)
        return 0;
    struct upid number = number_at(pid, level);
    return (u64)number.ns == shared.pointer ? number.nr : 0;
}

/* ---- writing records ---- */

static __always_inline struct scratch *scratch_of(u32 index)
{
    return bpf_map_lookup_elem(&scratches, &index);
}

static __always_inline struct record *begin(struct scratch *s, u32 which, struct task_struct *task, u8 type, u32 deep)
{
    struct record *r = (struct record *)s->data;

    r->type = type;
    r->flags = deep > 1 ? FLAG_NESTED : 0;
    r->uid = (u32)bpf_get_current_uid_gid();
    r->time = bpf_ktime_get_ns();
    r->tid = own_number(task->thread_pid);
    r->pid = task->pid == task->tgid ? r->tid : own_number(READ(task, group_leader, thread_pid));
    r->parent = own_number(READ(task, real_parent, group_leader, thread_pid));
    if (r->pid == 1)
        r->flags |= FLAG_FIRST;
    r->result = 0;
    r->number = 0;
    bpf_get_current_comm(r->comm, sizeof r->comm);
    s->offset = sizeof *r;
    s->which = which;
    return r;
}

static __always_inline void send(struct scratch *s, u32 ring)
{
    struct record *r = (struct record *)s->data;
    u32 size = s->offset;
    long failed;

    if (size > RECORD_MAX)
        size = RECORD_MAX;
    r->size = size;
    r->sequence = __sync_fetch_and_add(&shared.sequence, 1);
    if (ring == RING_MARKS)
        failed = bpf_ringbuf_output(&marks, s->data, size, BPF_RB_NO_WAKEUP);
    else if (ring == RING_VITAL)
        failed = bpf_ringbuf_output(&vital, s->data, size, BPF_RB_NO_WAKEUP);
    else
        failed = bpf_ringbuf_output(&bulk, s->data, size, BPF_RB_NO_WAKEUP);
    if (ring < RINGS)
        add(failed ? &shared.dropped[ring] : &shared.sent[ring], 1);
}

static __always_inline void *room(struct scratch *s)
{
    return &s->data[(s->offset & OFFSET_MASK) + sizeof(struct part)];
}

/* Close the part whose bytes were written at room(). */
static __always_inline void put(struct scratch *s, u8 tag, u8 flags, u32 length)
{
    u32 offset = s->offset & OFFSET_MASK;
    struct part *part = (struct part *)&s->data[offset];

    part->tag = tag;
    part->flags = flags;
    part->length = length;
    s->offset = offset + sizeof *part + length;
}

static __always_inline void put_user_string(struct scratch *s, u8 tag, u64 address)
{
    long length = bpf_probe_read_user_str(room(s), PATH_BYTES, (void *)address);

    if (length <= 0) {
        ((struct record *)s->data)->flags |= FLAG_UNREADABLE;
        return;
    }
    put(s, tag, length == PATH_BYTES ? PART_CUT | PART_CLAIM : PART_CLAIM, length - 1);
}

static __always_inline void put_kernel_string(struct scratch *s, u8 tag, const char *text)
{
    long length = bpf_probe_read_kernel_str(room(s), PATH_BYTES, text);

    if (length > 0)
        put(s, tag, length == PATH_BYTES ? PART_CUT : 0, length - 1);
}

static __always_inline struct mount *mount_of(struct vfsmount *inner)
{
    return (void *)inner - __builtin_preserve_field_info(((struct mount *)0)->mnt, 0);
}

/* Walk from a file's entry to the root of its mount namespace, over mounts. Names come out last first. */
__noinline int put_path_in(u32 which, u32 tag, u64 inner, u64 entry)
{
    struct scratch *s = scratch_of(which);
    if (!s)
        return 0;
    struct dentry *dentry = (struct dentry *)entry;
    struct mount *mount = mount_of((struct vfsmount *)inner);
    u32 start = s->offset & OFFSET_MASK;
    u8 flags = PART_REVERSED | PART_CUT;

    if (!READ(dentry, d_hash.pprev) && READ(dentry, d_parent) != dentry)
        flags |= PART_DELETED;
    s->offset = start + sizeof(struct part);
    for (u32 step = 0; step < PATH_STEPS; step++) {
        struct dentry *parent = READ(dentry, d_parent);
        struct dentry *top = READ(mount, mnt.mnt_root);
        u32 offset = s->offset & OFFSET_MASK;

        if (dentry == top || dentry == parent) {
            struct mount *above = READ(mount, mnt_parent);
            if (above == mount || dentry != top) {
                if (dentry != top || !READ(mount, mnt_ns))
                    flags |= PART_DETACHED;
                flags &= ~PART_CUT;
                if (dentry == top || s->offset != start + sizeof(struct part))
                    break; /* else it is a name on no tree, as that of a memfd */
                parent = dentry;
                step = PATH_STEPS;
            } else {
                dentry = READ(mount, mnt_mountpoint);
                mount = above;
                continue;
            }
        }
        if (offset > start + PATH_BYTES - NAME_BYTES)
            break;
        const unsigned char *name = READ(dentry, d_name.name);
        long length = bpf_probe_read_kernel_str(&s->data[offset], NAME_BYTES, name);
        if (length <= 0)
            break;
        s->data[(offset + length - 1) & 0x7fff & OFFSET_MASK] = '/';
        s->offset = offset + length;
        dentry = parent;
    }
    u32 end = s->offset & OFFSET_MASK;
    s->offset = start;
    put(s, tag, flags, end - start - sizeof(struct part));
    return 0;
}

static __always_inline void put_file(struct scratch *s, u32 tag, struct file *file)
{
    put_path_in(s->which, tag, (u64)READ(file, f_path.mnt), (u64)READ(file, f_path.dentry));
}

static __always_inline void put_identity(struct scratch *s, struct inode *inode)
{
    struct identity *identity = room(s);

    identity->inode = READ(inode, i_ino);
    identity->device = READ(inode, i_sb, s_dev);
    identity->mode = READ(inode, i_mode);
    put(s, PART_IDENTITY, 0, sizeof *identity);
}

static __always_inline struct file *file_of(struct task_struct *task, u32 number)
{
    struct fdtable *table = READ(task, files, fdt);
    struct file **files = READ(table, fd);
    struct file *file = 0;

    if (number >= READ(table, max_fds))
        return 0;
    bpf_probe_read_kernel(&file, sizeof file, files + number);
    return file;
}

/* ---- sockets ---- */

static __always_inline void put_unix(struct scratch *s, u8 tag, struct sock *sock)
{
    if (!bpf_core_type_exists(struct unix_sock) || !sock)
        return;
    struct unix_sock *end = (struct unix_sock *)sock;
    struct unix_address *address = READ(end, addr);
    if (!address)
        return;
    u32 length = READ(address, len);
    void *name = (void *)address + __builtin_preserve_field_info(((struct unix_address *)0)->name, 0);
    if (length > ADDRESS_MAX - 1)
        length = ADDRESS_MAX - 1;
    asm volatile("%0 &= 127" : "+r"(length));
    if (length > 0 && !bpf_probe_read_kernel(room(s), length, name))
        put(s, tag, 0, length);
}

static __always_inline void put_inet(struct scratch *s, u8 tag, struct sock *sock, u16 family, u16 port, int remote)
{
    u8 *out = room(s);

    *(u16 *)out = family;
    *(u16 *)(out + 2) = port;
    if (family == AF_INET) {
        *(u32 *)(out + 4) = remote ? READ(sock, __sk_common.skc_daddr) : READ(sock, __sk_common.skc_rcv_saddr);
        put(s, tag, 0, 8);
        return;
    }
    *(u32 *)(out + 4) = 0;
    if (bpf_core_field_exists(sock->__sk_common.skc_v6_daddr)) {
        struct in6_addr found = remote ? READ(sock, __sk_common.skc_v6_daddr) : READ(sock, __sk_common.skc_v6_rcv_saddr);
        __builtin_memcpy(out + 8, &found, sizeof found);
        put(s, tag, 0, 24);
    }
}

__noinline int put_socket(u32 which, u64 number)
{
    struct scratch *s = scratch_of(which);
    if (!s)
        return 0;
    struct task_struct *task = bpf_get_current_task_btf();
    struct file *file = file_of(task, number);

    if (!file)
        return 0;
    struct inode *inode = READ(file, f_inode);
    if ((READ(inode, i_mode) & S_IFMT) != S_IFSOCK)
        return 0;
    struct socket *socket = READ(file, private_data);
    struct sock *sock = READ(socket, sk);
    if (!sock)
        return 0;
    u16 family = READ(sock, __sk_common.skc_family);
    struct socket_facts *facts = room(s);
    facts->family = family;
    facts->type = READ(sock, sk_type);
    facts->protocol = READ(sock, sk_protocol);
    facts->state = READ(sock, __sk_common.skc_state);
    put(s, PART_SOCKET, 0, sizeof *facts);
    put_identity(s, inode);
    if (family == AF_INET || family == AF_INET6) {
        put_inet(s, PART_LOCAL, sock, family, bpf_htons(READ(sock, __sk_common.skc_num)), 0);
        u16 port = READ(sock, __sk_common.skc_dport);
        if (port)
            put_inet(s, PART_REMOTE, sock, family, port, 1);
    } else if (family == AF_UNIX) {
        put_unix(s, PART_LOCAL, sock);
        if (bpf_core_type_exists(struct unix_sock))
            put_unix(s, PART_REMOTE, READ((struct unix_sock *)sock, peer));
    }
    return 0;
}

__noinline int put_address(u32 which, u64 address, u64 size)
{
    struct scratch *s = scratch_of(which);
    if (!s)
        return 0;
    u32 length = size > ADDRESS_MAX - 1 ? ADDRESS_MAX - 1 : size;

    if (!address || !length)
        return 0;
    asm volatile("%0 &= 127" : "+r"(length));
    if (bpf_probe_read_user(room(s), length, (void *)address))
        ((struct record *)s->data)->flags |= FLAG_UNREADABLE;
    else
        put(s, PART_ADDRESS, PART_CLAIM, length);
    return 0;
}

/* struct msghdr begins with the address and its length, on both architectures: <linux/socket.h>. */
static __always_inline void put_message(struct scratch *s, u64 message)
{
    struct {
        u64 name;
        u32 length;
        u32 spare;
    } head = {};

    if (!bpf_probe_read_user(&head, sizeof head, (void *)message))
        put_address(s->which, head.name, head.length);
}

/* ---- calls ---- */

static __always_inline u64 argument(const u64 *arguments, u8 number)
{
    return arguments[(number - 1) & 7];
}

static __always_inline int is_decoy(u64 inode, u32 device, int insert)
{
    u64 key = ((u64)device << 40) ^ inode;
    u32 slot = (key ^ (key >> 32)) * 2654435761U >> 8;

    if (!key)
        return 0;
    for (u32 step = 0; step < 8; step++) {
        u64 *at = &shared.decoys[(slot + step) & (DECOYS - 1)];
        if (*at == key)
            return 1;
        if (*at == 0)
            return insert && __sync_val_compare_and_swap(at, 0, key) == 0;
    }
    return 0;
}

static __always_inline void seen(u64 *bitmap, u64 number)
{
    u64 *word = &bitmap[(number >> 6) & 15];
    u64 bit = 1ULL << (number & 63);

    if (!(*word & bit))
        __sync_fetch_and_or(word, bit);
}

static __always_inline int was_seen(const u64 *bitmap, u64 number)
{
    return bitmap[(number >> 6) & 15] >> (number & 63) & 1;
}

static __always_inline int is_compat(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
    return task->thread_info.status & 2; /* TS_COMPAT, <asm/thread_info.h> */
#else
    return task->thread_info.flags >> 22 & 1; /* TIF_32BIT */
#endif
}

static __always_inline void read_arguments(u64 *out, struct pt_regs *regs, int compat)
{
#if defined(__TARGET_ARCH_x86)
    if (compat) {
        out[0] = (u32)regs->bx;
        out[1] = (u32)regs->cx;
        out[2] = (u32)regs->dx;
        out[3] = (u32)regs->si;
        out[4] = (u32)regs->di;
        out[5] = (u32)regs->bp;
        return;
    }
    out[0] = regs->di;
    out[1] = regs->si;
    out[2] = regs->dx;
    out[3] = regs->r10;
    out[4] = regs->r8;
    out[5] = regs->r9;
#else
    out[0] = regs->orig_x0;
    out[1] = regs->regs[1];
    out[2] = regs->regs[2];
    out[3] = regs->regs[3];
    out[4] = regs->regs[4];
    out[5] = regs->regs[5];
#endif
}

static __always_inline void put_arguments(struct scratch *s, u32 count)
{
    u64 *out = room(s);

    for (int i = 0; i < 6; i++)
        out[i] = s->arguments[i]; /* all, though fewer may be kept: there is space */
    put(s, PART_ARGUMENTS, 0, (count > 6 ? 6 : count) * sizeof(u64));
}

static __noinline u64 digest_of(u64 address)
{
    u64 words[8] = {};
    u64 sum = 14695981039346656037ULL;

    bpf_probe_read_user_str(words, sizeof words, (void *)address);
    for (int i = 0; i < 8; i++)
        sum = (sum ^ words[i]) * 1099511628211ULL;
    return sum;
}

/* A path as it was given, and where it is relative the directory it starts from. */
__noinline int put_claimed_path(u32 which, u64 address, u64 directory, u32 second)
{
    struct scratch *s = scratch_of(which);
    if (!s)
        return 0;
    struct task_struct *task = bpf_get_current_task_btf();
    u32 offset = s->offset & OFFSET_MASK;

    put_user_string(s, second ? PART_PATH2 : PART_PATH, address);
    if (s->data[offset + sizeof(struct part)] == '/')
        return 0;
    if ((int)directory == AT_FDCWD) {
        struct fs_struct *fs = READ(task, fs);
        put_path_in(s->which, second ? PART_BASE2 : PART_BASE, (u64)READ(fs, pwd.mnt), (u64)READ(fs, pwd.dentry));
    } else {
        struct file *file = file_of(task, directory);
        if (file)
            put_file(s, second ? PART_BASE2 : PART_BASE, file);
    }
    return 0;
}

__noinline int put_descriptor(u32 which, u32 number, u32 second)
{
    struct scratch *s = scratch_of(which);
    if (!s)
        return 0;
    struct file *file = file_of(bpf_get_current_task_btf(), number);

    if (!file)
        return 0;
    struct inode *inode = READ(file, f_inode);
    if (!second)
        put_identity(s, inode);
    if ((READ(inode, i_mode) & S_IFMT) != S_IFSOCK)
        put_file(s, second ? PART_FILE2 : PART_FILE, file);
    return 0;
}

/* Count bytes by process and file: for sockets, and regular files that are open for writing. */
__noinline int count_bytes(u32 number, u64 read, u64 written)
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
                at->pid = own_number(READ(task, group_leader, thread_pid));
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
    add(&shared.transfers_missed, 1);
    return 0;
}

/* At close: what went through this file by this process, told with its path or addresses. */
__noinline int tell_transfer(u64 number, u32 deep)
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
    begin(s, SCRATCH_ENTER, task, TYPE_TRANSFER, deep);
    struct transfer *out = room(s);
    *out = *at;
    put(s, PART_ARGUMENTS, 0, sizeof *out);
    if ((READ(inode, i_mode) & S_IFMT) == S_IFSOCK)
        put_socket(s->which, number);
    else
        put_file(s, PART_FILE, file);
    at->read = at->written = 0;
    at->orphaned = 0;
    at->key = 0;
    send(s, RING_BULK);
    return 0;
}

static __always_inline void note_pending(struct task_struct *task, u64 number, const u64 *arguments, struct call *call)
{
    u64 id = (u32)task->pid;

    for (u32 step = 0; step < 4; step++) {
        struct pending *at = &shared.pending[(id + step) & (PENDINGS - 1)];
        if (at->task != id && __sync_val_compare_and_swap(&at->task, 0, id) != 0)
            continue;
        at->time = bpf_ktime_get_ns();
        at->number = number;
        at->tid = own_number(task->thread_pid);
        at->pid = own_number(READ(task, group_leader, thread_pid));
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
    add(&shared.pending_missed, 1);
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

/* Whole seconds that a call sleeps at least; absolute times are on clocks of which only the monotonic one is read. */
static __always_inline s64 seconds_slept(const u64 *arguments, u8 address)
{
    s64 time[2] = {};

    if (bpf_probe_read_user(time, sizeof time, (void *)argument(arguments, address)))
        return 0;
    if (address == 3 && (arguments[1] & 1)) { /* clock_nanosleep with TIMER_ABSTIME */
        if (arguments[0] != 1)
            return 1;
        s64 left = time[0] * 1000000000LL + time[1] - (s64)bpf_ktime_get_ns();
        return left > 0 ? (u64)left / 1000000000ULL : 0;
    }
    return time[0];
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long id)
{
    struct task_struct *task = bpf_get_current_task_btf();
    u32 deep = matches(task);

    if (!deep)
        return 0;
    add(&shared.matched[bpf_get_smp_processor_id() & (STRIPES - 1)][0], 1);
    if (is_compat(task)) {
        seen(shared.compat, id);
        return 0;
    }
    if (id & 0x40000000)
        return 0;
    seen(shared.entered, id);
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
        tell_transfer(arguments[0], deep);
        return 0;
    }
    if (call->flags & (CALL_TRACKED | CALL_COMPARED)) {
        read_arguments(arguments, regs, 0);
        struct tracked *found = bpf_task_storage_get(&tracked, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
        if (!found) {
            add(&shared.storage_missed, 1);
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
        note_pending(task, id, arguments, call);
    }
    if (kind == KIND_END || kind == KIND_SLEEP) {
        s64 seconds = 0;
        read_arguments(arguments, regs, 0);
        if (kind == KIND_SLEEP) {
            seconds = seconds_slept(arguments, call->address);
            if (seconds < 1)
                return 0;
        }
        struct record *r = begin(s, SCRATCH_ENTER, task, TYPE_CALL, deep);
        r->number = id;
        r->flags |= FLAG_ENTERED;
        r->result = seconds;
        put_arguments(s, call->arguments);
        send(s, RING_BULK);
    }
    return 0;
}

static __always_inline int is_wanted_option(u64 option)
{
    switch ((u32)option) {
    case 4:          /* PR_SET_DUMPABLE, <linux/prctl.h> */
    case 8:          /* PR_SET_KEEPCAPS */
    case 15:         /* PR_SET_NAME */
    case 22:         /* PR_SET_SECCOMP */
    case 24:         /* PR_CAPBSET_DROP */
    case 28:         /* PR_SET_SECUREBITS */
    case 35:         /* PR_SET_MM */
    case 36:         /* PR_SET_CHILD_SUBREAPER */
    case 38:         /* PR_SET_NO_NEW_PRIVS */
    case 47:         /* PR_CAP_AMBIENT */
    case 59:         /* PR_SET_SYSCALL_USER_DISPATCH */
    case 0x59616d61: /* PR_SET_PTRACER */
        return 1;
    }
    return 0;
}

/* Places that tell a program where it runs: /.dockerenv, /run/.containerenv, what is below /proc and /sys. */
static __always_inline int is_telltale(const u8 *path)
{
    if (path[0] != '/')
        return 0;
    if (path[1] == '.')
        return 1;
    if (path[1] == 'p' && path[2] == 'r' && path[3] == 'o' && path[4] == 'c')
        return 1;
    if (path[1] == 's' && path[2] == 'y' && path[3] == 's' && path[4] == '/')
        return 1;
    return path[1] == 'r' && path[2] == 'u' && path[3] == 'n' && path[4] == '/' && path[5] == '.';
}

static __always_inline int is_mark(const u8 *path, u32 length)
{
    return length > sizeof MARK_PREFIX - 1 && path[0] == '/' && path[1] == '.' && path[2] == 'm' && path[3] == 'a' &&
           path[4] == 'r' && path[5] == 'k' && path[6] == '/';
}

__noinline int tell_compat(u32 deep, u64 number, s64 result)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct scratch *s = scratch_of(SCRATCH_EXIT);

    if (!s)
        return 0;
    struct record *r = begin(s, SCRATCH_EXIT, task, TYPE_CALL, deep);
    r->flags |= FLAG_COMPAT;
    if (!was_seen(shared.compat, number))
        r->flags |= FLAG_DENIED;
    seen(shared.compat_returned, number);
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
    u32 deep = matches(task);

    if (!deep)
        return 0;
    struct scratch *s = scratch_of(SCRATCH_EXIT);
    if (!s)
        return 0;
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
        tell_compat(deep, id, result);
        return 0;
    }
    u8 flags = 0;
    if (id & 0x40000000) {
        flags |= FLAG_X32;
        id &= CALLS - 1;
    } else {
        /* Before the gate's mark a call may return that was begun before anything was recorded; the first process
         * (the warden) waits in one. */
        if (shared.gate && !was_seen(shared.returned, id)) {
            if (was_seen(shared.entered, id) || own_number(task->thread_pid) != 1)
                seen(shared.returned, id);
        }
        if (!was_seen(shared.entered, id) && was_seen(shared.returned, id))
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
    if (call.flags & CALL_SENDS && result > 0)
        count_bytes(arguments[0], 0, result);

    switch (call.kind) {
    case KIND_NONE:
    case KIND_END:
    case KIND_SLEEP:
    case KIND_CLOSE:
        if (!flags)
            return 0;
        break;
    case KIND_READ:
        if (!failed && result > 0)
            count_bytes(arguments[0], result, 0);
        return 0;
    case KIND_WRITE:
        if (!failed && result > 0)
            count_bytes(arguments[0], 0, result);
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

    struct record *r = begin(s, SCRATCH_EXIT, task, TYPE_CALL, deep);
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
            if (is_decoy(number, device, !shared.gate && (READ(inode, i_mode) & S_IFMT) == S_IFREG &&
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
        if (call.kind == KIND_ACCESS && is_mark(path, length) && (r->pid == 1 || !shared.gate)) {
            if (r->pid != 1)
                shared.gate = 1;
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

/* ---- processes ---- */

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old, struct linux_binprm *program)
{
    u32 deep = matches(task);

    if (!deep)
        return 0;
    struct scratch *s = scratch_of(SCRATCH_EXEC);
    if (!s)
        return 0;
    struct record *r = begin(s, SCRATCH_EXEC, task, TYPE_EXEC, deep);
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
    u32 deep = matches(task);

    if (!deep)
        return 0;
    struct scratch *s = scratch_of(SCRATCH_FORK);
    if (!s)
        return 0;
    struct record *r = begin(s, SCRATCH_FORK, task, TYPE_FORK, deep);
    int thread = task->tgid == child->tgid;
    r->number = thread;
    r->result = own_number(READ(child, thread_pid));
    send(s, thread ? RING_BULK : RING_VITAL);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_end, struct task_struct *task)
{
    u32 deep = matches(task);

    if (!deep)
        return 0;
    forget_pending(task);
    if (READ(task, signal, live.counter) != 0)
        return 0;
    u32 process = task->tgid;
    for (u32 slot = 0; slot < TRANSFERS; slot++)
        if (shared.transfers[slot].key && shared.transfers[slot].process == process) {
            shared.transfers[slot].orphaned = 1;
            add(&shared.orphans, 1);
        }
    struct scratch *s = scratch_of(SCRATCH_END);
    if (!s)
        return 0;
    struct record *r = begin(s, SCRATCH_END, task, TYPE_EXIT, deep);
    int of_group = READ(task, signal, group_exit_code);
    r->result = of_group ? of_group : task->exit_code;
    send(s, RING_VITAL);
    return 0;
}
