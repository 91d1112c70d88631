/* What a target may do, one deed a mode, for the tests of the recorder. Harmless; runs in the sandbox only. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char *self;

static void run(char **argv)
{
    pid_t child = fork();
    if (child == 0) {
        execv(argv[0], argv);
        _exit(127);
    }
    waitpid(child, NULL, 0);
}

static void spawns(int count)
{
    for (int i = 0; i < count; i++) {
        char number[32];
        snprintf(number, sizeof number, "spawn-%d", i);
        char *argv[] = {"/bin/true", number, NULL};
        run(argv);
    }
}

static int opens_each;

static void *failing_opens(void *which)
{
    char path[64];
    for (int i = 0; i < opens_each; i++) {
        snprintf(path, sizeof path, "/nowhere/%ld/%d", (long)which, i);
        open(path, O_RDONLY);
    }
    return NULL;
}

static void threads(int count, void *(*body)(void *))
{
    pthread_t made[64];
    for (long i = 0; i < count; i++)
        pthread_create(&made[i], NULL, body, (void *)i);
    for (int i = 0; i < count; i++)
        pthread_join(made[i], NULL);
}

/* One thread flips the name between two files of different sizes while another opens it. */
static volatile char flipping[] = "/home/user/file-a";
static volatile int flipped_enough;
static volatile unsigned long flipped;

static void *flip(void *unused)
{
    while (!flipped_enough) {
        flipping[sizeof flipping - 2] = flipped & 1 ? 'a' : 'b';
        flipped++;
        for (volatile int pause = 0; pause < 20; pause++)
            ; /* else the two stores meet before anybody else sees the first */
    }
    return unused;
}

static void flips(int count)
{
    pthread_t flipper;
    int plain = 0, decoy = 0;
    pthread_create(&flipper, NULL, flip, NULL);
    for (int i = 0; plain + decoy < count; i++) {
        int fd = open((const char *)flipping, O_RDONLY);
        struct stat found;
        if (fd < 0)
            continue;
        if (fstat(fd, &found) == 0 && found.st_size == 5)
            decoy++;
        else
            plain++;
        close(fd);
    }
    flipped_enough = 1;
    pthread_join(flipper, NULL);
    printf("plain %d decoy %d\n", plain, decoy);
}

/* The same with names that the kernel reads once and keeps nowhere. */
static void moves(int count)
{
    pthread_t flipper;
    pthread_create(&flipper, NULL, flip, NULL);
    for (int i = 0; i < count; i++) {
        unsigned long before = flipped; /* only while the other thread runs at this very time */
        for (volatile int pause = 0; pause < 200; pause++)
            ;
        if (flipped == before)
            i--;
        else
            rename("/nowhere", (const char *)flipping);
    }
    flipped_enough = 1;
    pthread_join(flipper, NULL);
    rename("/nowhere", "/home/user/file-c");
}

static void addresses(void)
{
    int pair = socket(AF_INET, SOCK_DGRAM, 0), stream = socket(AF_INET, SOCK_STREAM, 0);
    int six = socket(AF_INET6, SOCK_DGRAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(4242), .sin_addr.s_addr = htonl(0x7f000007)};
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(4343), .sin6_addr.s6_addr[15] = 1};
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0hidden"};
    struct iovec data = {"hello", 5};
    struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &data, .msg_iovlen = 1};
    struct mmsghdr several[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    struct sockaddr_in other = to;
    other.sin_port = htons(4244);
    several[1].msg_hdr.msg_name = &other;

    sendmsg(pair, &message, 0);
    sendmmsg(pair, several, 2, 0);
    sendto(pair, "hello", 5, 0, (void *)&to, sizeof to);
    connect(six, (void *)&to6, sizeof to6);
    connect(stream, (void *)&to, sizeof to); /* refused */
    bind(local, (void *)&name, sizeof(sa_family_t) + 7);
    listen(local, 1);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    connect(client, (void *)&name, sizeof(sa_family_t) + 7);
    (void)!send(client, "here", 4, 0);

    /* What an event loop does to wake itself; and the same sends when they fail. */
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    (void)!send(ends[0], "abc", 3, 0);
    (void)!send(ends[0], "def", 3, 0);
    close(ends[1]);
    (void)!send(ends[0], "ghi", 3, MSG_NOSIGNAL);

    /* A listener of our own, so that a connection succeeds; 1,000 bytes one way and 7 the other. */
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    socklen_t size = sizeof any;
    int listener = socket(AF_INET, SOCK_STREAM, 0), caller = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (void *)&any, sizeof any);
    listen(listener, 1);
    getsockname(listener, (void *)&any, &size);
    connect(caller, (void *)&any, sizeof any);
    int answered = accept(listener, NULL, NULL);
    char block[1000] = {0};
    (void)!write(caller, block, sizeof block);
    (void)!read(answered, block, sizeof block);
    (void)!send(answered, block, 7, 0);
    (void)!recv(caller, block, sizeof block, 0);
    printf("port %d\n", ntohs(any.sin_port));
    fflush(stdout);
    close(caller);
}

static void denied(void)
{
    static char parameters[256];
    unshare(CLONE_NEWUSER | CLONE_NEWPID);
    syscall(SYS_io_uring_setup, 8, parameters);
    socket(40, SOCK_STREAM, 0); /* AF_VSOCK */
    ptrace(PTRACE_ATTACH, 1, 0, 0);
    syscall(SYS_bpf, 0, parameters, sizeof parameters);
    syscall(SYS_keyctl, 0, 0);
    (void)!setuid(0);
    prctl(PR_SET_NAME, "innocent");
    syscall(SYS_memfd_create, "hidden thing", 0);
}

static void files(void)
{
    static const char odd[] = "new\nline \"quoted\" \\ \xff\xfe";
    char name[128];
    mkdir("made", 0700);
    chdir("made");
    int fd = open(odd, O_WRONLY | O_CREAT | O_EXCL, 0600);
    (void)!write(fd, "0123456789", 10);
    void *shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    (void)shared;
    fchmod(fd, 0644);
    close(fd);
    fd = open(odd, O_RDWR);
    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    snprintf(name, sizeof name, "/nowhere/%s", odd);
    open(name, O_RDONLY);
    rename(odd, "renamed");
    symlink("/etc/passwd", "link");
    open("link", O_RDONLY); /* the kernel's path is that of the target */
    link("renamed", "second");
    truncate("second", 3);
    chmod("second", 0700);
    unlink("second");
    int directory = open(".", O_RDONLY | O_DIRECTORY);
    unlinkat(directory, "renamed", 0);
    rmdir("../nothing");
    fd = open("gone", O_RDWR | O_CREAT, 0600);
    unlink("gone");
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    open(name, O_RDONLY);
    access("/.mark/discover/forged", F_OK);
    struct stat found;
    stat("/.dockerenv", &found);
    stat("/usr", &found);
}

static void chain(int left)
{
    char number[32];
    snprintf(number, sizeof number, "%d", left - 1);
    char *argv[] = {self, "chain", number, "an argument with\nnewline", NULL};
    char *environment[] = {"SECRET_TOKEN=do not tell", "PLAIN=x", NULL};
    if (left > 0)
        execve(self, argv, environment);
}

static void daemonize(void)
{
    if (fork() != 0) {
        wait(NULL);
        usleep(200000);
        return;
    }
    setsid();
    if (fork() != 0)
        _exit(0);
    usleep(50000); /* the one in the middle is gone by then */
    close(open("/tmp/daemon-was-here", O_WRONLY | O_CREAT, 0600));
    _exit(7);
}

#if defined(__x86_64__)
static void call32(void)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11"); /* getpid */
}
#endif

static void nested(void)
{
    if (unshare(CLONE_NEWPID) != 0) {
        printf("can't: %s\n", strerror(errno));
        return;
    }
    if (fork() == 0) {
        char *argv[] = {"/bin/true", "from inside", NULL};
        close(open("/tmp/nested-was-here", O_WRONLY | O_CREAT, 0600));
        run(argv);
        _exit(0);
    }
    wait(NULL);
}

static void hear(void)
{
    char byte = 0;
    while (byte != '\n' && read(0, &byte, 1) == 1)
        ;
}

/* A process in a pid namespace of its own, which says the namespace's number. */
static void in_namespace(int first)
{
    struct stat namespace;
    if (fork() != 0) {
        usleep(1000);
        return;
    }
    if (unshare(CLONE_NEWPID) != 0 || fork() != 0) {
        wait(NULL);
        _exit(0);
    }
    stat("/proc/self/ns/pid", &namespace);
    printf("%lu\n", (unsigned long)namespace.st_ino);
    fflush(stdout);
    if (first)
        hear();
    else
        usleep(800000);
    close(open("/tmp/was-here", O_WRONLY | O_CREAT, 0600));
    _exit(0);
}

/* One namespace that ends when it is told to, and then, when told to, many at a time. */
static void reuse(int count)
{
    in_namespace(1);
    wait(NULL);
    printf("gone\n");
    fflush(stdout);
    hear();
    for (int i = 0; i < count; i++)
        in_namespace(0);
    while (wait(NULL) > 0)
        ;
}

static void flood(int milliseconds)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        for (int i = 0; i < 1000; i++)
            open("/nowhere/flooding", O_RDONLY);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < milliseconds);
}

/* Everything a target could try against a recorder. None of it reaches one. */
static void tamper(int milliseconds)
{
    static char forged[64] = {64, 0, 2, 0}; /* the head of a record */
    char path[64];
    prctl(PR_SET_NAME, "monitor");
    for (int fd = 0; fd < 64; fd++) {
        (void)!write(fd, forged, sizeof forged);
        for (int pid = 1; pid < 32; pid++) {
            snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
            int other = open(path, O_WRONLY | O_NONBLOCK);
            if (other >= 0) {
                (void)!write(other, forged, sizeof forged);
                close(other);
            }
        }
    }
    kill(1, SIGKILL);
    kill(-1, SIGKILL);
    access("/.mark/stop/forged", F_OK);
    flood(milliseconds);
    close(open("/home/user/.ssh/id_ed25519", O_RDONLY));
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(4242), .sin_addr.s_addr = htonl(0x7f000007)};
    connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof to);
    flood(milliseconds);
    char *argv[] = {"/bin/true", "after the flood", NULL};
    run(argv);
}

int main(int argc, char **argv)
{
    int number = argc > 2 ? atoi(argv[2]) : 0;

    self = "/tmp/target";
    if (strcmp(argv[1], "spawns") == 0)
        spawns(number);
    else if (strcmp(argv[1], "opens") == 0) {
        opens_each = number / 8;
        threads(8, failing_opens);
    } else if (strcmp(argv[1], "flips") == 0)
        flips(number);
    else if (strcmp(argv[1], "moves") == 0)
        moves(number);
    else if (strcmp(argv[1], "addresses") == 0)
        addresses();
    else if (strcmp(argv[1], "denied") == 0)
        denied();
    else if (strcmp(argv[1], "files") == 0)
        files();
    else if (strcmp(argv[1], "chain") == 0)
        chain(number);
    else if (strcmp(argv[1], "daemon") == 0)
        daemonize();
    else if (strcmp(argv[1], "nested") == 0)
        nested();
    else if (strcmp(argv[1], "reuse") == 0)
        reuse(number);
    else if (strcmp(argv[1], "flood") == 0)
        flood(number);
    else if (strcmp(argv[1], "tamper") == 0)
        tamper(number);
    else if (strcmp(argv[1], "touch") == 0)
        close(open(argv[2], O_WRONLY | O_CREAT, 0600));
#if defined(__x86_64__)
    else if (strcmp(argv[1], "call32") == 0)
        call32();
#endif
    else if (strcmp(argv[1], "stuck") == 0) {
        mkfifo("/tmp/nobody-writes", 0600);
        printf("stuck\n");
        fflush(stdout);
        open("/tmp/nobody-writes", O_RDONLY);
    }
    fflush(stdout);
    if (strcmp(argv[1], "group") == 0)
        syscall(SYS_exit_group, 41);
    return 0;
}
