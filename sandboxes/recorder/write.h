// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* Writing records: their heads, strings, and the kernel's own paths of files. */
#ifndef WRITE_H
#define WRITE_H

#include "space.h"

static __always_inline struct scratch *scratch_of(u32 index)
{
    return bpf_map_lookup_elem(&scratches, &index);
}

__noinline int begin_record(u32 which, u32 type, u32 place)
{
    struct scratch *s = scratch_of(which);
    if (!s)
        return 0;
    struct task_struct *task = bpf_get_current_task_btf();
    struct space *space = space_at(place);
    struct record *r = (struct record *)s->data;

    r->type = type;
    r->flags = (place & 0xff) > 1 ? FLAG_NESTED : 0;
    r->space = (place >> 8) & (SPACES - 1);
    r->uid = (u32)bpf_get_current_uid_gid();
    r->time = bpf_ktime_get_ns();
    r->tid = own_number(space, task->thread_pid);
    r->pid = task->pid == task->tgid ? r->tid : own_number(space, READ(task, group_leader, thread_pid));
    r->parent = own_number(space, READ(task, real_parent, group_leader, thread_pid));
    if (r->pid == 1)
        r->flags |= FLAG_FIRST;
    r->result = 0;
    r->number = 0;
    bpf_get_current_comm(r->comm, sizeof r->comm);
    s->offset = sizeof *r;
    s->which = which;
    s->place = place;
    return 0;
}

static __always_inline struct record *begin(struct scratch *s, u32 which, u8 type, u32 place)
{
    begin_record(which, type, place);
    return (struct record *)s->data;
}

static __always_inline void send(struct scratch *s, u32 ring)
{
    struct record *r = (struct record *)s->data;
    struct space *space = space_at(s->place);
    u32 size = s->offset;
    long failed;

    if (size > RECORD_MAX)
        size = RECORD_MAX;
    r->size = size;
    r->sequence = __sync_fetch_and_add(&space->sequence, 1);
    if (ring == RING_MARKS)
        failed = bpf_ringbuf_output(&marks, s->data, size, BPF_RB_NO_WAKEUP);
    else if (ring == RING_VITAL)
        failed = bpf_ringbuf_output(&vital, s->data, size, BPF_RB_NO_WAKEUP);
    else
        failed = bpf_ringbuf_output(&bulk, s->data, size, BPF_RB_NO_WAKEUP);
    if (ring < RINGS)
        add(failed ? &space->dropped[ring] : &space->sent[ring], 1);
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

#endif
