/* The loader of the recorder: puts its kernel part to work, then frames what comes and forwards it.
 *
 *   recorder DEADLINE_SECONDS [RING_KIB]
 *
 * Writes frames on stdout (record.h), beginning with FRAME_READY, or with FRAME_FAILED and exit 3 where this kernel
 * or this container does not allow it. By then it has given up its capabilities. Then it obeys lines on stdin:
 *
 *   RECORD <inode> <seconds>\n   record the pid namespace with that inode and those inside it, until the deadline that
 *                      many seconds from now; answered with FRAME_ARMED
 *   COUNT\n            answered with FRAME_COUNTERS
 *   STOP\n             read what is there, then FRAME_COUNTERS, FRAME_END, exit 0
 *
 * At the end of stdin or when told to terminate it ends as after STOP; at the deadline too, with exit 124. Any other
 * line ends it with exit 125. The bytes of records are not looked into, but for the values of environment variables,
 * which are cut off here.
 *
 * Nothing holds it up: stdout never blocks, and while nobody reads there, records wait in the rings and are dropped
 * and counted by the kernel part once these are full.
 */
#define _GNU_SOURCE
#include "record.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "names.h" /* made by build.sh: NATIVE_CALLS and COMPAT_CALLS, as text */

#define OUT_BYTES (4U << 20)
#define OUT_RESERVE 65536U /* always left for what is not a record */
#define BATCH_BYTES (1U << 18)
#define POLL_MILLISECONDS 3
#define SECONDS_MAX (7 * 24 * 3600)
#define LINE_BYTES 256
#define BUSY (1U << 31)    /* BPF_RINGBUF_BUSY_BIT, <linux/bpf.h> */
#define DISCARD (1U << 30) /* BPF_RINGBUF_DISCARD_BIT */
#define RECORD_HEAD 8      /* BPF_RINGBUF_HDR_SZ */

extern const char object_start[], object_end[];
__asm__(".section .rodata\n.balign 16\n.global object_start\nobject_start:\n.incbin \"recorder.bpf.o\"\n"
        ".global object_end\nobject_end:\n.byte 0\n.previous\n");

struct ring_view {
    volatile unsigned long *consumed;
    volatile unsigned long *produced;
    unsigned char *data;
    unsigned long mask;
};

static struct shared *shared;
static struct ring_view rings[RINGS];
static unsigned char out[OUT_BYTES];
static unsigned out_from, out_to;
static int out_broken;
static volatile sig_atomic_t told_to_end;
static char complaint[2048];
static struct bpf_object *object;

static void on_signal(int number)
{
    (void)number;
    told_to_end = 1;
}

static long long milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* ---- stdout ---- */

static void flush(void)
{
    while (out_from < out_to && !out_broken) {
        ssize_t put = write(1, out + out_from, out_to - out_from);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            if (errno != EAGAIN)
                out_broken = 1;
            break;
        }
        out_from += (unsigned)put;
    }
    if (out_broken || out_from == out_to)
        out_from = out_to = 0;
}

static unsigned space(void)
{
    if (out_from > OUT_BYTES / 2) {
        memmove(out, out + out_from, out_to - out_from);
        out_to -= out_from;
        out_from = 0;
    }
    return OUT_BYTES - out_to;
}

static void say(u8 kind, const void *data, size_t size)
{
    struct frame head = {.kind = kind, .size = (u32)size};

    if (space() < sizeof head + size)
        return; /* only answers get here, and the reserve is for them */
    memcpy(out + out_to, &head, sizeof head);
    memcpy(out + out_to + sizeof head, data, size);
    out_to += (unsigned)(sizeof head + size);
}

static int fail(const char *what, int error)
{
    static char text[sizeof complaint + 512];
    int size = snprintf(text, sizeof text, "%s: %s\n%s", what, strerror(error), complaint);

    say(FRAME_FAILED, text, size < (int)sizeof text ? (size_t)size : sizeof text - 1);
    flush();
    return 3;
}

/* The last words of libbpf, which has the verifier's in them. */
static int keep_complaint(enum libbpf_print_level level, const char *format, va_list arguments)
{
    char text[4096];

    if (level != LIBBPF_WARN)
        return 0;
    int size = vsnprintf(text, sizeof text, format, arguments);
    if (getenv("RECORDER_VERBOSE"))
        fprintf(stderr, "%s", text);
    if (size > 0) {
        size_t length = strlen(text), kept = strlen(complaint);
        if (length > sizeof complaint / 2)
            memmove(text, text + length - sizeof complaint / 2, sizeof complaint / 2 + 1), length = sizeof complaint / 2;
        if (kept + length >= sizeof complaint)
            kept = 0;
        memcpy(complaint + kept, text, length + 1);
    }
    return 0;
}

/* ---- what to record: by the machine's own call numbers ---- */

static void want(long number, struct call call)
{
    if (number >= 0 && number < CALLS)
        shared->calls[number] = call;
}

#define CALL(name, ...) want(SYS_##name, (struct call){__VA_ARGS__})
#define VITAL .flags = CALL_VITAL

static void choose_calls(void)
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
    CALL(openat2, KIND_OPEN, CALL_BLOCKING, 4, .path = 2, .base = 1);
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
    CALL(clock_nanosleep, KIND_SLEEP, 0, 4, .address = 3);
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

/* ---- the rings ---- */

static int view(struct ring_view *ring, int map, unsigned long size)
{
    unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    unsigned char *read_write = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    unsigned char *read_only = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, map, (off_t)page);

    if (read_write == MAP_FAILED || read_only == MAP_FAILED)
        return -1;
    ring->consumed = (volatile unsigned long *)read_write;
    ring->produced = (volatile unsigned long *)read_only;
    ring->data = read_only + page; /* mapped twice in a row: a record never wraps */
    ring->mask = size - 1;
    return 0;
}

/* Copy a record, leaving out the values of environment variables. */
static unsigned copy_record(unsigned char *to, const unsigned char *from, unsigned size)
{
    const struct record *record = (const struct record *)from;
    unsigned at = sizeof *record, end = sizeof *record;

    if (record->type != TYPE_EXEC || size < sizeof *record) {
        memcpy(to, from, size);
        return size;
    }
    memcpy(to, from, sizeof *record);
    while (at + sizeof(struct part) <= size) {
        struct part part;
        memcpy(&part, from + at, sizeof part);
        at += sizeof part;
        if (part.length > size - at)
            break;
        unsigned char *data = to + end + sizeof part;
        unsigned kept = 0;
        if (part.tag == PART_ENVIRONMENT) {
            int in_name = 1;
            for (unsigned i = 0; i < part.length; i++) {
                unsigned char byte = from[at + i];
                if (byte == '=')
                    in_name = 0;
                if (in_name || byte == '\0')
                    data[kept++] = byte;
                if (byte == '\0')
                    in_name = 1;
            }
        } else {
            memcpy(data, from + at, part.length);
            kept = part.length;
        }
        at += part.length;
        part.length = (u16)kept;
        memcpy(to + end, &part, sizeof part);
        end += (unsigned)sizeof part + kept;
    }
    ((struct record *)to)->size = (u16)end;
    return end;
}

/* Move what a ring holds to `out`, at most one batch. True when the ring was read to its end. */
static int drain(struct ring_view *ring)
{
    struct frame head = {.kind = FRAME_RECORDS};
    unsigned long at = *ring->consumed;
    unsigned long produced = __atomic_load_n(ring->produced, __ATOMIC_ACQUIRE);

    if (at == produced)
        return 1;
    if (space() < BATCH_BYTES + OUT_RESERVE)
        return 0;
    unsigned start = out_to, end = out_to + (unsigned)sizeof head;
    int whole = 1;
    while (at < produced) {
        unsigned char *entry = ring->data + (at & ring->mask);
        u32 length = __atomic_load_n((u32 *)entry, __ATOMIC_ACQUIRE);
        if (length & BUSY)
            break; /* being written: it and what follows come next time */
        u32 size = length & ~DISCARD;
        if (end - start + size > BATCH_BYTES) {
            whole = 0;
            break;
        }
        if (!(length & DISCARD))
            end += copy_record(out + end, entry + RECORD_HEAD, size);
        at += (size + RECORD_HEAD + 7UL) / 8 * 8;
    }
    __atomic_store_n(ring->consumed, at, __ATOMIC_RELEASE);
    head.size = end - start - (u32)sizeof head;
    if (head.size > 0) {
        memcpy(out + start, &head, sizeof head);
        out_to = end;
    }
    return whole;
}

static void append(unsigned char **end, u8 tag, u8 flags, const void *data, size_t size)
{
    struct part part = {.tag = tag, .flags = flags, .length = (u16)size};

    memcpy(*end, &part, sizeof part);
    memcpy(*end + sizeof part, data, size);
    *end += sizeof part + size;
}

static void say_record(unsigned char *record, unsigned char *end)
{
    ((struct record *)record)->size = (u16)(end - record);
    say(FRAME_RECORDS, record, (size_t)(end - record));
}

/* Byte counts of processes that have ended; at the end of the recording, of all. */
static void collect_transfers(int all)
{
    for (unsigned i = 0; i < TRANSFERS; i++) {
        struct transfer *transfer = &shared->transfers[i];
        unsigned char buffer[512] __attribute__((aligned(8))) = {0};
        unsigned char *end = buffer + sizeof(struct record);
        if (!transfer->key || !(all || transfer->orphaned))
            continue;
        if (space() < OUT_RESERVE / 2)
            return;
        struct record *record = (struct record *)buffer;
        record->type = TYPE_TRANSFER;
        record->sequence = ~0ULL;
        record->time = transfer->time;
        record->pid = record->tid = transfer->pid;
        append(&end, PART_ARGUMENTS, 0, transfer, sizeof *transfer);
        say_record(buffer, end);
        transfer->read = transfer->written = 0;
        transfer->orphaned = 0;
        __atomic_store_n(&transfer->key, 0, __ATOMIC_RELEASE);
    }
}

static void tell_pending(void)
{
    for (unsigned i = 0; i < PENDINGS; i++) {
        struct pending *pending = &shared->pending[i];
        unsigned char buffer[512] __attribute__((aligned(8))) = {0};
        unsigned char *end = buffer + sizeof(struct record);
        if (!pending->task || space() < sizeof buffer + 4096)
            continue;
        struct record *record = (struct record *)buffer;
        record->type = TYPE_PENDING;
        record->flags = FLAG_ENTERED;
        record->sequence = ~0ULL;
        record->time = pending->time;
        record->pid = pending->pid;
        record->tid = pending->tid;
        record->number = pending->number;
        append(&end, PART_ARGUMENTS, 0, pending->arguments, sizeof pending->arguments);
        struct call *call = &shared->calls[pending->number & (CALLS - 1)];
        if (pending->claimed > 0 && pending->claimed <= CLAIM_BYTES) {
            u8 flags = pending->claimed >= CLAIM_BYTES - 1 ? PART_CLAIM | PART_CUT : PART_CLAIM;
            append(&end, call->path ? PART_PATH : PART_ADDRESS, flags, pending->claim, pending->claimed);
        }
        say_record(buffer, end);
    }
}

/* Runs of the kernel part that the kernel left out; -1 where it does not tell. */
static long long misses(void)
{
    struct bpf_program *program;
    long long sum = 0;

    bpf_object__for_each_program(program, object)
    {
        struct bpf_prog_info info = {0};
        u32 size = sizeof info;
        if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) != 0)
            return -1;
        sum += (long long)info.recursion_misses;
    }
    return sum;
}

static size_t bitmap_text(char *text, size_t room, const char *name, const u64 *bitmap)
{
    size_t used = (size_t)snprintf(text, room, "%s ", name);

    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(text + used, room - used, "%016llx", bitmap[i]);
    return used + (size_t)snprintf(text + used, room - used, "\n");
}

static void tell_counters(void)
{
    static char text[8192];
    static const char *const names[RINGS] = {"marks", "vital", "bulk"};
    u64 matched = 0;
    size_t used = 0;

    for (int i = 0; i < STRIPES; i++)
        matched += shared->matched[i][0];
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "calls %llu\nmatched %llu\nmissed %lld\ntransfers_missed %llu\npending_missed "
                             "%llu\nstorage_missed %llu\ngate %u\nlevel %u\n",
                             matched, shared->sequence, misses(), shared->transfers_missed, shared->pending_missed,
                             shared->storage_missed, shared->gate, shared->level);
    for (int i = 0; i < RINGS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "sent_%s %llu\ndropped_%s %llu\n", names[i],
                                 shared->sent[i], names[i], shared->dropped[i]);
    used += bitmap_text(text + used, sizeof text - used, "entered", shared->entered);
    used += bitmap_text(text + used, sizeof text - used, "returned", shared->returned);
    used += bitmap_text(text + used, sizeof text - used, "entered32", shared->compat);
    used += bitmap_text(text + used, sizeof text - used, "returned32", shared->compat_returned);
    say(FRAME_COUNTERS, text, used);
}

/* ---- set-up ---- */

static int give_up_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_capset, &head, none) != 0;
}

static int set_up(unsigned long bulk_bytes)
{
    static const char *const names[RINGS] = {"marks", "vital", "bulk"};
    struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    struct bpf_program *program;
    struct bpf_map *map;

    setrlimit(RLIMIT_MEMLOCK, &unlimited); /* before Linux 5.11 maps count there; then the container must allow it */
    libbpf_set_print(keep_complaint);
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "recorder");
    object = bpf_object__open_mem(object_start, (size_t)(object_end - object_start), &options);
    if (!object)
        return fail("the kernel part can't be read", errno);
    map = bpf_object__find_map_by_name(object, "bulk");
    if (!map || bpf_map__set_max_entries(map, (u32)bulk_bytes) != 0)
        return fail("the ring can't be made that large", errno);
    int error = bpf_object__load(object);
    if (error)
        return fail("the kernel refuses the recorder", -error);
    bpf_object__for_each_map(map, object)
    {
        if (strstr(bpf_map__name(map), ".bss") == NULL)
            continue;
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
        if (bpf_map__value_size(map) < sizeof *shared)
            shared = MAP_FAILED;
    }
    if (shared == NULL || shared == MAP_FAILED)
        return fail("the shared memory can't be mapped", errno);
    choose_calls();
    for (int i = 0; i < RINGS; i++) {
        map = bpf_object__find_map_by_name(object, names[i]);
        if (!map || view(&rings[i], bpf_map__fd(map), bpf_map__max_entries(map)) != 0)
            return fail("a ring can't be mapped", errno);
    }
    bpf_object__for_each_program(program, object)
    {
        if (!bpf_program__attach(program))
            return fail("the kernel part can't be attached", errno);
    }
    if (give_up_capabilities())
        return fail("the capabilities can't be given up", errno);
    return 0;
}

/* ---- stdin ---- */

static char line[LINE_BYTES];
static size_t length;
static long long deadline; /* in milliseconds */

/* 0: go on; else the exit status plus one. */
static int obey(void)
{
    if (strncmp(line, "RECORD ", 7) == 0) {
        char *end, *rest;
        unsigned long inode = strtoul(line + 7, &end, 10);
        long seconds = *end == ' ' ? strtol(end + 1, &rest, 10) : 0;
        if (inode == 0 || inode > 0xffffffffUL || shared->inode != 0 || seconds < 1 || seconds > SECONDS_MAX ||
            *rest != '\0')
            return 126;
        deadline = milliseconds() + seconds * 1000LL;
        __atomic_store_n(&shared->inode, (u32)inode, __ATOMIC_SEQ_CST);
        say(FRAME_ARMED, line + 7, strlen(line + 7));
        return 0;
    }
    if (strcmp(line, "COUNT") == 0) {
        tell_counters();
        return 0;
    }
    return strcmp(line, "STOP") == 0 ? 1 : 126;
}

static int take(void)
{
    char buffer[LINE_BYTES];
    ssize_t got = read(0, buffer, sizeof buffer);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return 1;
    for (ssize_t at = 0; at < got; at++) {
        if (buffer[at] != '\n') {
            if (length + 1 >= sizeof line)
                return 126;
            line[length++] = buffer[at];
            continue;
        }
        line[length] = '\0';
        length = 0;
        int ended = obey();
        if (ended)
            return ended;
    }
    return 0;
}

/* One look at all rings. What was numbered before the look before the last one has come, or never will. */
static void sweep(void)
{
    static u64 before, told;
    static u64 orphans;
    u64 now = __atomic_load_n(&shared->sequence, __ATOMIC_SEQ_CST);
    int whole = 1;

    for (int i = 0; i < RINGS; i++)
        whole &= drain(&rings[i]);
    if (shared->orphans != orphans) {
        orphans = shared->orphans;
        collect_transfers(0);
    }
    if (whole) {
        if (before != told) {
            say(FRAME_READ, &before, sizeof before);
            told = before;
        }
        before = now;
    }
}

static int finish(const char *why, int status)
{
    __atomic_store_n(&shared->inode, 0, __ATOMIC_SEQ_CST);
    long long limit = milliseconds() + 10000;
    u64 all = 0;

    for (int rounds = 0; milliseconds() < limit && !out_broken; rounds++) {
        unsigned long left = 0;
        sweep();
        flush();
        for (int i = 0; i < RINGS; i++)
            left += *rings[i].produced - *rings[i].consumed;
        if (left == 0 && rounds >= 2)
            break;
        struct pollfd watched = {.fd = out_from < out_to ? 1 : -1, .events = POLLOUT};
        poll(&watched, 1, 2);
    }
    all = shared->sequence;
    say(FRAME_READ, &all, sizeof all);
    collect_transfers(1);
    tell_pending();
    tell_counters();
    say(FRAME_END, why, strlen(why));
    while (out_from < out_to && !out_broken && milliseconds() < limit) {
        struct pollfd watched = {.fd = 1, .events = POLLOUT};
        poll(&watched, 1, 100);
        flush();
    }
    return status;
}

int main(int argc, char **argv)
{
    static const char names[] = ARCHITECTURE NATIVE_CALLS COMPAT_CALLS;
    struct sigaction action = {.sa_handler = on_signal};
    char *end = NULL;
    long seconds = argc >= 2 ? strtol(argv[1], &end, 10) : 0;
    unsigned long kib = argc == 3 ? strtoul(argv[2], NULL, 10) : 16384;

    if (argc > 3 || seconds < 1 || seconds > SECONDS_MAX || *end != '\0' || kib < 64 || kib > 1UL << 20 ||
        (kib & (kib - 1))) {
        dprintf(2, "recorder: usage: recorder DEADLINE_SECONDS [RING_KIB, a power of two]\n");
        return 125;
    }
    deadline = milliseconds() + seconds * 1000LL;
    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    int failed = set_up(kib << 10);
    if (failed)
        return failed;
    for (int fd = 0; fd < 2; fd++)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    say(FRAME_READY, names, sizeof names - 1);
    flush();

    for (;;) {
        struct pollfd watched[2] = {{.fd = 0, .events = POLLIN}, {.fd = -1, .events = POLLOUT}};
        if (told_to_end || out_broken)
            return finish("told to end", 0);
        if (milliseconds() >= deadline)
            return finish("deadline", 124);
        if (out_from < out_to)
            watched[1].fd = 1;
        int ready = poll(watched, 2, shared->inode ? POLL_MILLISECONDS : 1000);
        if (ready > 0 && watched[0].revents) {
            int ended = take();
            if (ended)
                return finish(ended == 1 ? "stopped" : "not understood", ended - 1);
        }
        sweep();
        flush();
    }
}
