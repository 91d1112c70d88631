/* The warden: watches over one target from inside the target's pid namespace, in a container of its own.
 *
 *   monitor DEADLINE_SECONDS
 *
 * Says "ready <inode of its pid namespace>\n" on stdout, then obeys lines on stdin:
 *
 *   MARK <phase> <nonce>\n   access(2) on /.mark/<phase>/<nonce>, then answers "marked <nonce>\n"
 *   KILL\n                   kills every process of the namespace but its init and itself, then answers "killed\n"
 *
 * Any other line is answered "refused\n". At the end of stdin, or when it is told to terminate, it kills in the same
 * way and exits 0; at the deadline it says "deadline\n", kills and exits 124.
 *
 * Two ways to be there. Best it comes first and the target joins it (--pid container:WARDEN): then it is the
 * namespace's init, reaps what the target leaves behind, and its own end makes the kernel kill everything else.
 * Or it joins the target. Then the namespace's init (docker-init, with --init) ends when its only child is dead, and
 * the kernel kills all that is left, the warden included: so "killed" and the exit code may be missing, and the end of
 * its stdout says the same as "killed". An init that is the target itself can't be killed from inside.
 *
 * Started anywhere else it would kill far too much, the machine's own processes even. So it refuses to run in the
 * machine's namespace, and wherever it can see its parent: neither an init nor a process that joined a namespace can.
 *
 * Nothing that others do can hold it up: reading and writing never block, answers that nobody reads are dropped,
 * and a line without end is thrown away.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
#define ANSWERS_MAX_BYTES 8192
#define NONCE_MAX 64
#define SECONDS_MAX (7 * 24 * 3600)
#define KILL_ROUNDS 1000
#define KILL_PAUSE_NANOSECONDS 5000000L

/* PROC_PID_INIT_INO of <linux/proc_ns.h>: the namespace of the whole machine. */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCUL

static volatile sig_atomic_t told_to_end;
static char answers[ANSWERS_MAX_BYTES];
static size_t waiting;
static char line[LINE_MAX_BYTES];
static size_t length;
static int too_long;

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

static void flush(void)
{
    while (waiting > 0) {
        ssize_t put = write(1, answers, waiting);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            if (put < 0 && errno != EAGAIN)
                waiting = 0; /* nobody will ever read this */
            return;
        }
        waiting -= (size_t)put;
        memmove(answers, answers + put, waiting);
    }
}

static void answer(const char *what, const char *which)
{
    char text[NONCE_MAX + 32];
    int size = snprintf(text, sizeof text, "%s%s%s\n", what, *which ? " " : "", which);

    if (size > 0 && (size_t)size < sizeof text && waiting + (size_t)size <= sizeof answers) {
        memcpy(answers + waiting, text, (size_t)size);
        waiting += (size_t)size;
    }
    flush();
}

/* Kill until nobody is left to be killed. One kill(-1) reaches all processes that exist at that instant, and the
 * kernel does not let a process with a pending SIGKILL fork; the rounds wait for zombies to be reaped. */
static void kill_everybody(void)
{
    const struct timespec pause = {0, KILL_PAUSE_NANOSECONDS};

    for (int round = 0; round < KILL_ROUNDS; round++) {
        if (kill(-1, SIGKILL) < 0 && errno == ESRCH)
            return;
        nanosleep(&pause, NULL);
    }
}

static int plain(const char *text, size_t maximum)
{
    size_t size = 0;

    for (; text[size] != '\0'; size++)
        if (text[size] <= ' ' || text[size] > '~' || text[size] == '/')
            return 0;
    return size > 0 && size <= maximum;
}

static void obey(void)
{
    char path[LINE_MAX_BYTES + 16];
    char *phase, *nonce;

    if (strcmp(line, "KILL") == 0) {
        kill_everybody();
        answer("killed", "");
        return;
    }
    if (strncmp(line, "MARK ", 5) == 0) {
        phase = line + 5;
        nonce = strchr(phase, ' ');
        if (nonce != NULL) {
            *nonce++ = '\0';
            if (plain(phase, LINE_MAX_BYTES) && plain(nonce, NONCE_MAX)) {
                snprintf(path, sizeof path, "/.mark/%s/%s", phase, nonce);
                (void)!access(path, F_OK); /* the call itself is the message, to whoever records syscalls */
                answer("marked", nonce);
                return;
            }
        }
    }
    answer("refused", "");
}

/* Read what there is; 0 at the end of stdin. */
static int take(void)
{
    char buffer[LINE_MAX_BYTES];
    ssize_t got = read(0, buffer, sizeof buffer);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0)
        return 0;
    for (ssize_t at = 0; at < got; at++) {
        if (buffer[at] == '\n') {
            line[length] = '\0';
            if (too_long)
                answer("refused", "");
            else
                obey();
            length = 0;
            too_long = 0;
        } else if (buffer[at] == '\0' || length + 1 >= sizeof line) {
            too_long = 1;
        } else {
            line[length++] = buffer[at];
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct stat namespace;
    char inode[32];
    char *end = NULL;
    long seconds = argc == 2 ? strtol(argv[1], &end, 10) : 0;

    if (seconds < 1 || seconds > SECONDS_MAX || *end != '\0') {
        dprintf(2, "monitor: usage: monitor DEADLINE_SECONDS\n");
        return 125;
    }
    long long deadline = milliseconds() + seconds * 1000LL;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN); /* as init: the kernel then reaps orphans for us, and none stays to be killed again */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    for (int fd = 0; fd < 2; fd++) {
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
            dprintf(2, "monitor: can't prepare descriptor %d: %s\n", fd, strerror(errno));
            return 125;
        }
    }
    if (stat("/proc/self/ns/pid", &namespace) < 0) {
        dprintf(2, "monitor: /proc/self/ns/pid: %s\n", strerror(errno));
        return 125;
    }
    if (namespace.st_ino == INITIAL_PID_NAMESPACE || getppid() != 0) {
        dprintf(2, "monitor: refused: not in the pid namespace of another container\n");
        return 125;
    }
    snprintf(inode, sizeof inode, "%llu", (unsigned long long)namespace.st_ino);
    answer("ready", inode);

    for (;;) {
        struct pollfd watched[2] = {{.fd = 0, .events = POLLIN}, {.fd = waiting ? 1 : -1, .events = POLLOUT}};
        long long left = deadline - milliseconds();

        if (left <= 0) {
            answer("deadline", "");
            kill_everybody();
            return 124;
        }
        /* At most a second at a time: a signal that comes between the check and poll is then noticed soon. */
        int ready = told_to_end ? 0 : poll(watched, 2, left > 1000 ? 1000 : (int)left);
        if (told_to_end)
            break;
        if (ready < 0 && errno != EINTR)
            break; /* better a dead target than an unwatched one */
        if (ready <= 0)
            continue;
        if (watched[1].revents)
            flush();
        if (watched[0].revents && !take())
            break;
    }
    kill_everybody();
    return 0;
}
