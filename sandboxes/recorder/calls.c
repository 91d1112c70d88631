/* What to record and how, by the machine's own call numbers. */
#include "loader.h"

#include <sys/syscall.h>

static void want(long number, struct call call)
{
    if (number >= 0 && number < CALLS)
        shared->calls[number] = call;
}

#define CALL(name, ...) want(SYS_##name, (struct call){__VA_ARGS__})
#define VITAL .flags = CALL_VITAL

void choose_calls(void)
{
#ifdef SYS_open
    CALL(open, KIND_OPEN, CALL_BLOCKING, 3, .path = 1);
    CALL(creat, KIND_OPEN, CALL_BLOCKING, 2, .path = 1);
    CALL(access, KIND_ACCESS, 0, 2, .path = 1);
    CALL(stat, KIND_STAT, 0, 1, .path = 1);
    CALL(lstat, KIND_STAT, 0, 1, .path = 1);
    CALL(readlink, KIND_STAT, 0, 1, .path = 1);
    CALL(unlink, KIND_PLAIN, CALL_COMPARED, 1, .path = 1);
    CALL(rmdir, KIND_PLAIN, CALL_COMPARED, 1, .path = 1);
    CALL(rename, KIND_PLAIN, CALL_COMPARED, 2, .path = 1, .path2 = 2);
    CALL(link, KIND_PLAIN, CALL_COMPARED, 2, .path = 1, .path2 = 2);
    CALL(symlink, KIND_PLAIN, CALL_COMPARED, 2, .path = 1, .path2 = 2);
    CALL(chmod, KIND_PLAIN, CALL_COMPARED, 2, .path = 1);
    CALL(chown, KIND_PLAIN, CALL_COMPARED, 3, .path = 1);
    CALL(lchown, KIND_PLAIN, CALL_COMPARED, 3, .path = 1);
    CALL(mkdir, KIND_PLAIN, CALL_COMPARED, 2, .path = 1);
    CALL(mknod, KIND_PLAIN, CALL_COMPARED, 3, .path = 1);
    CALL(modify_ldt, KIND_PLAIN, 0, 3);
    CALL(ioperm, KIND_PLAIN, 0, 3);
    CALL(iopl, KIND_PLAIN, 0, 1);
    CALL(uselib, KIND_PLAIN, 0, 1, .path = 1);
#endif
    CALL(openat, KIND_OPEN, CALL_BLOCKING, 4, .path = 2, .base = 1);
    CALL(openat2, KIND_OPEN, CALL_BLOCKING | CALL_HOW, 4, .path = 2, .base = 1);
    CALL(open_by_handle_at, KIND_OPEN, 0, 3);
    CALL(name_to_handle_at, KIND_PLAIN, 0, 5, .path = 2, .base = 1);
    CALL(faccessat, KIND_ACCESS, 0, 3, .path = 2, .base = 1);
    CALL(faccessat2, KIND_ACCESS, 0, 4, .path = 2, .base = 1);
#ifdef SYS_newfstatat
    CALL(newfstatat, KIND_STAT, 0, 4, .path = 2, .base = 1);
#endif
    CALL(statx, KIND_STAT, 0, 4, .path = 2, .base = 1);
    CALL(readlinkat, KIND_STAT, 0, 2, .path = 2, .base = 1);
    CALL(unlinkat, KIND_PLAIN, CALL_COMPARED, 3, .path = 2, .base = 1);
    CALL(renameat2, KIND_PLAIN, CALL_COMPARED, 5, .path = 2, .path2 = 4, .base = 1, .base2 = 3);
#ifdef SYS_renameat
    CALL(renameat, KIND_PLAIN, CALL_COMPARED, 4, .path = 2, .path2 = 4, .base = 1, .base2 = 3);
#endif
    CALL(linkat, KIND_PLAIN, CALL_COMPARED, 5, .path = 2, .path2 = 4, .base = 1, .base2 = 3);
    CALL(symlinkat, KIND_PLAIN, CALL_COMPARED, 3, .path = 1, .path2 = 3, .base2 = 2);
    CALL(fchmod, KIND_PLAIN, 0, 2, .file = 1);
    CALL(fchmodat, KIND_PLAIN, CALL_COMPARED, 3, .path = 2, .base = 1);
    want(452, (struct call){KIND_PLAIN, CALL_COMPARED, 4, .path = 2, .base = 1}); /* fchmodat2, newer than the headers */
    CALL(fchown, KIND_PLAIN, 0, 3, .file = 1);
    CALL(fchownat, KIND_PLAIN, CALL_COMPARED, 5, .path = 2, .base = 1);
    CALL(mkdirat, KIND_PLAIN, CALL_COMPARED, 3, .path = 2, .base = 1);
    CALL(mknodat, KIND_PLAIN, CALL_COMPARED, 4, .path = 2, .base = 1);
    CALL(truncate, KIND_PLAIN, CALL_COMPARED, 2, .path = 1);
    CALL(ftruncate, KIND_PLAIN, 0, 2, .file = 1);
    CALL(fallocate, KIND_PLAIN, 0, 4, .file = 1);
    CALL(setxattr, KIND_PLAIN, CALL_COMPARED, 5, .path = 1, .path2 = 2);
    CALL(lsetxattr, KIND_PLAIN, CALL_COMPARED, 5, .path = 1, .path2 = 2);
    CALL(fsetxattr, KIND_PLAIN, 0, 5, .path2 = 2, .file = 1);
    CALL(removexattr, KIND_PLAIN, CALL_COMPARED, 2, .path = 1, .path2 = 2);
    CALL(lremovexattr, KIND_PLAIN, CALL_COMPARED, 2, .path = 1, .path2 = 2);
    CALL(fremovexattr, KIND_PLAIN, 0, 2, .path2 = 2, .file = 1);
    CALL(chdir, KIND_DIRECTORY, 0, 1, .path = 1);
    CALL(fchdir, KIND_DIRECTORY, 0, 1);

    CALL(socket, KIND_PLAIN, CALL_TRACKED, 3);
    CALL(socketpair, KIND_PLAIN, CALL_TRACKED, 3);
    CALL(connect, KIND_SOCKET, CALL_VITAL | CALL_BLOCKING, 3, .address = 2);
    CALL(bind, KIND_SOCKET, CALL_VITAL, 3, .address = 2);
    CALL(listen, KIND_SOCKET, CALL_VITAL, 2);
    CALL(sendto, KIND_SOCKET, CALL_SENDS | CALL_BLOCKING, 6, .address = 5);
    CALL(sendmsg, KIND_MESSAGE, CALL_SENDS, 3);
    CALL(sendmmsg, KIND_MESSAGES, 0, 4);
    CALL(sendfile, KIND_PLAIN, CALL_SENDS, 4, .file = 1, .file2 = 2);
    CALL(splice, KIND_PLAIN, 0, 6, .file = 1, .file2 = 3);
    CALL(copy_file_range, KIND_PLAIN, 0, 6, .file = 1, .file2 = 3);
    CALL(mmap, KIND_MAP, 0, 6, .file = 5);
    CALL(read, KIND_READ);
    CALL(pread64, KIND_READ);
    CALL(readv, KIND_READ);
    CALL(preadv, KIND_READ);
    CALL(preadv2, KIND_READ);
    CALL(recvfrom, KIND_READ);
    CALL(recvmsg, KIND_READ);
    CALL(write, KIND_WRITE);
    CALL(pwrite64, KIND_WRITE);
    CALL(writev, KIND_WRITE);
    CALL(pwritev, KIND_WRITE);
    CALL(pwritev2, KIND_WRITE);
    CALL(close, KIND_CLOSE);

    CALL(execve, KIND_EXEC, CALL_VITAL, 3, .path = 1);
    CALL(execveat, KIND_EXEC, CALL_VITAL, 5, .path = 2, .base = 1);
    CALL(exit_group, KIND_END, 0, 1);
    CALL(clone, KIND_CLONE, CALL_TRACKED, 5);
    CALL(clone3, KIND_CLONE3, CALL_TRACKED, 2);
    CALL(kill, KIND_PLAIN, 0, 2);
    CALL(tkill, KIND_PLAIN, 0, 2);
    CALL(tgkill, KIND_PLAIN, 0, 3);
    CALL(pidfd_send_signal, KIND_PLAIN, 0, 4);
    CALL(pidfd_getfd, KIND_PLAIN, CALL_TRACKED, 3);
    CALL(nanosleep, KIND_SLEEP, 0, 2, .address = 1);
    CALL(clock_nanosleep, KIND_SLEEP_CLOCK, 0, 4, .address = 3);
#ifdef SYS_poll
    CALL(poll, KIND_WAIT, CALL_WAITS, 3, .address = 3);
    CALL(select, KIND_SLEEP, CALL_WAITS, 5, .address = 5);
    CALL(epoll_wait, KIND_WAIT, CALL_WAITS, 4, .address = 4);
#endif
    CALL(ppoll, KIND_SLEEP, CALL_WAITS, 3, .address = 3);
    CALL(pselect6, KIND_SLEEP, CALL_WAITS, 5, .address = 5);
    CALL(epoll_pwait, KIND_WAIT, CALL_WAITS, 4, .address = 4);
    want(441, (struct call){KIND_SLEEP, CALL_WAITS, 4, .address = 4}); /* epoll_pwait2, newer than the headers */
    CALL(prctl, KIND_PROCESS, CALL_TRACKED, 5);

    CALL(ptrace, KIND_PLAIN, CALL_TRACKED | CALL_VITAL, 4);
    CALL(process_vm_readv, KIND_PLAIN, CALL_TRACKED, 6);
    CALL(process_vm_writev, KIND_PLAIN, CALL_TRACKED, 6);
    CALL(kcmp, KIND_PLAIN, CALL_TRACKED, 5);
    CALL(mount, KIND_PLAIN, CALL_TRACKED, 5, .path = 1, .path2 = 2);
    CALL(umount2, KIND_PLAIN, CALL_TRACKED, 2, .path = 1);
    CALL(pivot_root, KIND_PLAIN, CALL_TRACKED, 2, .path = 1, .path2 = 2);
    CALL(chroot, KIND_PLAIN, CALL_TRACKED, 1, .path = 1);
    CALL(open_tree, KIND_PLAIN, CALL_TRACKED, 3, .path = 2, .base = 1);
    CALL(move_mount, KIND_PLAIN, CALL_TRACKED, 5, .path = 2, .path2 = 4, .base = 1, .base2 = 3);
    CALL(fsopen, KIND_PLAIN, CALL_TRACKED, 2, .path = 1);
    CALL(fsmount, KIND_PLAIN, CALL_TRACKED, 3);
    CALL(mount_setattr, KIND_PLAIN, CALL_TRACKED, 5, .path = 2, .base = 1);
    CALL(unshare, KIND_PLAIN, CALL_TRACKED | CALL_VITAL, 1);
    CALL(setns, KIND_PLAIN, CALL_TRACKED | CALL_VITAL, 2, .file = 1);
    CALL(setuid, KIND_PLAIN, 0, 1);
    CALL(setgid, KIND_PLAIN, 0, 1);
    CALL(setreuid, KIND_PLAIN, 0, 2);
    CALL(setregid, KIND_PLAIN, 0, 2);
    CALL(setresuid, KIND_PLAIN, 0, 3);
    CALL(setresgid, KIND_PLAIN, 0, 3);
    CALL(setfsuid, KIND_PLAIN, 0, 1);
    CALL(setfsgid, KIND_PLAIN, 0, 1);
    CALL(setgroups, KIND_PLAIN, 0, 2);
    CALL(capset, KIND_PLAIN, 0, 2);
    CALL(seccomp, KIND_PLAIN, CALL_TRACKED, 3);
    CALL(memfd_create, KIND_OPEN, 0, 2, .path = 1);
#ifdef SYS_memfd_secret
    CALL(memfd_secret, KIND_OPEN, CALL_TRACKED, 1);
#endif
    CALL(bpf, KIND_PLAIN, CALL_TRACKED | CALL_VITAL, 3);
    CALL(perf_event_open, KIND_PLAIN, CALL_TRACKED, 5);
    CALL(userfaultfd, KIND_PLAIN, CALL_TRACKED, 1);
    CALL(io_uring_setup, KIND_PLAIN, CALL_TRACKED | CALL_VITAL, 2);
    CALL(io_uring_enter, KIND_PLAIN, CALL_TRACKED, 6);
    CALL(io_uring_register, KIND_PLAIN, CALL_TRACKED, 4);
    CALL(io_submit, KIND_PLAIN, CALL_TRACKED, 3);
    CALL(kexec_load, KIND_PLAIN, CALL_TRACKED, 4);
    CALL(kexec_file_load, KIND_PLAIN, CALL_TRACKED, 5);
    CALL(init_module, KIND_PLAIN, CALL_TRACKED, 3);
    CALL(finit_module, KIND_PLAIN, CALL_TRACKED, 3, .file = 1);
    CALL(delete_module, KIND_PLAIN, CALL_TRACKED, 2, .path = 1);
    CALL(keyctl, KIND_PLAIN, CALL_TRACKED, 5);
    CALL(add_key, KIND_PLAIN, CALL_TRACKED, 5, .path = 1);
    CALL(request_key, KIND_PLAIN, CALL_TRACKED, 4, .path = 1);
    CALL(personality, KIND_PLAIN, CALL_TRACKED, 1);
    CALL(reboot, KIND_PLAIN, CALL_TRACKED, 4);
    CALL(swapon, KIND_PLAIN, CALL_TRACKED, 2, .path = 1);
    CALL(syslog, KIND_PLAIN, CALL_TRACKED, 3);
    CALL(acct, KIND_PLAIN, CALL_TRACKED, 1, .path = 1);
    CALL(sethostname, KIND_PLAIN, CALL_TRACKED, 2);
    CALL(settimeofday, KIND_PLAIN, CALL_TRACKED, 2);
    CALL(clock_settime, KIND_PLAIN, CALL_TRACKED, 2);
}
