// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/* What calls are given: registers, claimed paths, descriptors; which calls were seen, which files were planted. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "write.h"

static __always_inline u64 argument(const u64 *arguments, u8 number)
{
    return arguments[(number - 1) & 7];
}

static __always_inline int is_decoy(u64 inode, u32 device, u32 place, int insert)
{
    u64 key = ((u64)device << 40) ^ inode ^ ((u64)(place >> 8) << 60);
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

#endif
