/* The few kernel types that are read, with the few members that are used. Their true offsets are filled in when the
 * program is loaded (CO-RE), so this neither depends on a kernel version nor on the kernel of the building machine. */
#ifndef KERNEL_H
#define KERNEL_H

typedef u16 __u16;
typedef u8 __u8;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

#define BPF_ANY 0
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE 1024
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define BPF_RB_NO_WAKEUP 1

enum bpf_map_type {
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_RINGBUF = 27,
    BPF_MAP_TYPE_TASK_STORAGE = 29,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
    unsigned long bp, bx, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
};
struct thread_info {
    unsigned long flags;
    u32 status;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
    u64 regs[31];
    u64 orig_x0;
    s32 syscallno;
};
struct thread_info {
    unsigned long flags;
};
#else
#error "an architecture without a register layout here"
#endif

struct ns_common {
    unsigned int inum;
};
struct task_struct;
struct pid_namespace {
    struct ns_common ns;
    struct task_struct *child_reaper;
};
struct upid {
    int nr;
    struct pid_namespace *ns;
};
struct pid {
    unsigned int level;
    struct upid numbers[1];
};
typedef struct {
    int counter;
} atomic_t;
struct signal_struct {
    atomic_t live;
    int group_exit_code;
};

struct dentry;
struct qstr {
    const unsigned char *name;
};
struct hlist_bl_node {
    struct hlist_bl_node **pprev;
};
struct super_block {
    u32 s_dev;
};
struct inode {
    unsigned short i_mode;
    struct super_block *i_sb;
    unsigned long i_ino;
};
struct dentry {
    struct hlist_bl_node d_hash;
    struct dentry *d_parent;
    struct qstr d_name;
    struct inode *d_inode;
};
struct vfsmount {
    struct dentry *mnt_root;
};
struct mnt_namespace;
struct mount {
    struct mount *mnt_parent;
    struct dentry *mnt_mountpoint;
    struct vfsmount mnt;
    struct mnt_namespace *mnt_ns;
};
struct path {
    struct vfsmount *mnt;
    struct dentry *dentry;
};
struct file {
    struct path f_path;
    struct inode *f_inode;
    unsigned int f_mode;
    void *private_data;
};
struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};
struct files_struct {
    struct fdtable *fdt;
};
struct fs_struct {
    struct path pwd;
};
struct mm_struct {
    unsigned long arg_start, arg_end, env_start, env_end;
    struct file *exe_file;
};
struct linux_binprm {
    const char *filename;
    const char *interp;
};
struct task_struct {
    struct thread_info thread_info;
    int pid, tgid, exit_code;
    u64 start_boottime;
    struct task_struct *real_parent, *group_leader;
    struct pid *thread_pid;
    struct signal_struct *signal;
    struct files_struct *files;
    struct fs_struct *fs;
    struct mm_struct *mm;
};

struct in6_addr {
    u8 bytes[16];
};
struct sock_common {
    u32 skc_daddr, skc_rcv_saddr;
    u16 skc_dport, skc_num, skc_family;
    u8 skc_state;
    struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};
struct sock {
    struct sock_common __sk_common;
    u16 sk_type, sk_protocol;
};
struct socket {
    struct sock *sk;
};
struct sockaddr_un {
    u16 sun_family;
    char sun_path[108];
};
struct unix_address {
    int len;
    struct sockaddr_un name[];
};
struct unix_sock {
    struct unix_address *addr;
    struct sock *peer;
};

#pragma clang attribute pop
#endif
