/* The loader of the recorder: puts its kernel part to work, then frames what comes and forwards it.
 *
 *   recorder DEADLINE_SECONDS [RING_KIB]
 *
 * Writes frames on stdout (record.h), beginning with FRAME_READY, or with FRAME_FAILED and exit 3 where this kernel
 * or this container does not allow it. By then it has given up its capabilities. Then it obeys lines on stdin:
 *
 *   RECORD <inode> <seconds>\n   record the pid namespace with that inode and those inside it, until the deadline that
 *                      many seconds from now; answered with FRAME_ARMED and the number of its space. Up to SPACES
 *                      namespaces are recorded, at the same time or after another
 *   COUNT <space>\n    answered with FRAME_COUNTERS
 *   STOP <space>\n     read what is there, then FRAME_COUNTERS, FRAME_END
 *
 * At the end of stdin or when told to terminate it ends all records, and itself with exit 0; at its own deadline too,
 * with exit 124. Any other line ends it with exit 125. The bytes of records are not looked into, but for the values of
 * environment variables, which are cut off here.
 *
 * Nothing holds it up: stdout never blocks, and while nobody reads there, records wait in the rings and are dropped
 * and counted by the kernel part once these are full.
 */
#include "loader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
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

/* Between two looks while much comes, and while little does: each look that finds something costs the harness more
 * than the records do. What the fastest flood writes within the longer time fills a fifth of the ring. */
#define BUSY_MILLISECONDS 3
#define CALM_MILLISECONDS 20
#define BUSY_BYTES (64 << 10)
#define END_MILLISECONDS 10000
#define SECONDS_MAX (7 * 24 * 3600)
#define LINE_BYTES 256

extern const char object_start[], object_end[];
__asm__(".section .rodata\n.balign 16\n.global object_start\nobject_start:\n.incbin \"recorder.bpf.o\"\n"
        ".global object_end\nobject_end:\n.byte 0\n.previous\n");

struct shared *shared;
struct bpf_object *object;
static struct ring_view rings[RINGS];
static volatile sig_atomic_t told_to_end;

/* A space as the loader sees it: FREE, then RECORDED, then ENDING while its last records come, then ENDED for good. */
static struct keeper {
    enum { SPACE_FREE, SPACE_RECORDED, SPACE_ENDING, SPACE_ENDED } state;
    int rounds;          /* looks at all rings since its end was asked for */
    u64 before, told;    /* sequence numbers */
    long long deadline;  /* in milliseconds; of the ending once it ends */
    long long misses;    /* of the kernel part, before it began */
    const char *why;
} keepers[SPACES];

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

/* ---- spaces ---- */

static void end_space(unsigned number, const char *why)
{
    struct keeper *keeper = &keepers[number];

    if (keeper->state != SPACE_RECORDED)
        return;
    __atomic_store_n(&shared->spaces[number].inode, 0, __ATOMIC_SEQ_CST);
    keeper->state = SPACE_ENDING;
    keeper->rounds = 0;
    keeper->why = why;
    keeper->deadline = milliseconds() + END_MILLISECONDS;
}

static void tell_end(unsigned number)
{
    struct keeper *keeper = &keepers[number];
    struct reached all = {.space = number, .sequence = shared->spaces[number].sequence};
    char text[64];

    say(FRAME_READ, &all, sizeof all);
    collect_transfers(number);
    tell_pending(number);
    tell_counters(number, misses() - keeper->misses);
    say(FRAME_END, text, (size_t)snprintf(text, sizeof text, "%u %s", number, keeper->why));
    keeper->state = SPACE_ENDED;
}

/* One look at all rings. What was numbered before the look before the last one has come, or never will. */
static void sweep(void)
{
    u64 now[SPACES];
    int whole = 1;

    for (unsigned i = 0; i < shared->used; i++)
        now[i] = __atomic_load_n(&shared->spaces[i].sequence, __ATOMIC_SEQ_CST);
    drained = 0;
    for (int i = 0; i < RINGS; i++)
        whole &= drain(&rings[i]);
    collect_ended();
    for (unsigned i = 0; i < shared->used; i++) {
        struct keeper *keeper = &keepers[i];
        if (keeper->state == SPACE_ENDED)
            continue;
        if (whole) {
            if (keeper->before != keeper->told) {
                struct reached reached = {.space = i, .sequence = keeper->before};
                say(FRAME_READ, &reached, sizeof reached);
                keeper->told = keeper->before;
            }
            keeper->before = now[i];
            keeper->rounds++;
        }
        if (keeper->state == SPACE_RECORDED && milliseconds() >= keeper->deadline)
            end_space(i, "deadline");
        else if (keeper->state == SPACE_ENDING && (keeper->rounds > 2 || milliseconds() >= keeper->deadline))
            tell_end(i);
    }
}

/* How long to wait for something to do, in milliseconds. */
static int patience(void)
{
    int longest = 1000;

    for (unsigned i = 0; i < shared->used; i++) {
        if (keepers[i].state == SPACE_ENDING)
            return 1;
        if (keepers[i].state == SPACE_RECORDED)
            longest = drained > BUSY_BYTES ? BUSY_MILLISECONDS : CALM_MILLISECONDS;
    }
    return longest;
}

/* ---- stdin ---- */

static char line[LINE_BYTES];
static size_t length;
static long long deadline; /* in milliseconds */

static int record(const char *words)
{
    char *end, *rest = "?", text[16];
    unsigned long inode = strtoul(words, &end, 10);
    long seconds = *end == ' ' ? strtol(end + 1, &rest, 10) : 0;
    unsigned number = shared->used;

    if (inode == 0 || inode > 0xffffffffUL || number >= SPACES || seconds < 1 || seconds > SECONDS_MAX || *rest != '\0')
        return 126;
    keepers[number].state = SPACE_RECORDED;
    keepers[number].deadline = milliseconds() + seconds * 1000LL;
    keepers[number].misses = misses();
    __atomic_store_n(&shared->spaces[number].inode, (u32)inode, __ATOMIC_SEQ_CST);
    __atomic_store_n(&shared->used, number + 1, __ATOMIC_SEQ_CST);
    say(FRAME_ARMED, text, (size_t)snprintf(text, sizeof text, "%u", number));
    return 0;
}

/* 0: go on; else the exit status plus one. */
static int obey(void)
{
    char *end = "?";

    if (strncmp(line, "RECORD ", 7) == 0)
        return record(line + 7);
    int counted = strncmp(line, "COUNT ", 6) == 0, stopped = strncmp(line, "STOP ", 5) == 0;
    unsigned long number = counted || stopped ? strtoul(line + (counted ? 6 : 5), &end, 10) : 0;
    if (*end != '\0' || number >= shared->used)
        return 126;
    if (counted)
        tell_counters((unsigned)number, misses() - keepers[number].misses);
    else
        end_space((unsigned)number, "stopped");
    return 0;
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

static int finish(const char *why, int status)
{
    long long limit = milliseconds() + 2 * END_MILLISECONDS;
    char text[64];

    for (unsigned i = 0; i < shared->used; i++)
        end_space(i, why);
    while (patience() == 1 && milliseconds() < limit && !out_broken) {
        sweep();
        flush();
        struct pollfd watched = {.fd = out_from < out_to ? 1 : -1, .events = POLLOUT};
        poll(&watched, 1, 1);
    }
    say(FRAME_END, text, (size_t)snprintf(text, sizeof text, "- %s", why));
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
        int ready = poll(watched, 2, patience());
        if (ready > 0 && watched[0].revents) {
            int ended = take();
            if (ended)
                return finish(ended == 1 ? "stopped" : "not understood", ended - 1);
        }
        sweep();
        flush();
    }
}
