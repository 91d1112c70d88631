/* The gate: waits on stdin until it is told to start the server, then becomes it.
 *
 *   entry [--copy FROM TO] WORKDIR -- ARGV...
 *
 * With --copy, everything below FROM is first copied into the directory TO, for a server that writes beside its own
 * code: what is installed is sealed.
 *
 * Says "ready <inode of its pid namespace>\n" on stdout, then reads from stdin, never one byte too many,
 * because what follows the EXEC line is the server's own stdin:
 *
 *   DIR <octal mode> <path>\n            make a directory below $HOME
 *   FILE <octal mode> <size> <path>\n    followed by exactly <size> raw bytes
 *   LINK <target> <path>\n               make a symbolic link; its target is taken as it is
 *   EXEC <nonce>\n                       access(2) on /.mark/<nonce>, then chdir(WORKDIR) and execvp(ARGV)
 *
 * Paths and link targets are percent-encoded. Paths are relative to $HOME; absolute ones, ".." and components
 * that are links are refused; missing parent directories are made. Existing files are written anew.
 *
 * Exit: 125 for end of file before EXEC or a line that can't be obeyed, 126 for a command that can't be run,
 * 127 for one that was not found; the reason is one line on stderr.
 *
 * Lines are read byte by byte on purpose: a buffer here would swallow the first bytes of the server's stdin.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 8192
#define FILE_MAX_BYTES (64ULL << 20)
#define TOTAL_MAX_BYTES (256ULL << 20)
#define ENTRIES_MAX 20000
#define NONCE_MAX 64
#define DEPTH_MAX 200

static unsigned long long total;

static void die(int code, const char *what, const char *which)
{
    if (errno)
        dprintf(2, "entry: %s: %.200s: %s\n", what, which, strerror(errno));
    else
        dprintf(2, "entry: %s: %.200s\n", what, which);
    exit(code);
}

static void refuse(const char *what, const char *which)
{
    errno = 0;
    die(125, what, which);
}

/* Read up to `size` bytes; 0 only at the end of the stream. */
static size_t read_some(void *buffer, size_t size)
{
    for (;;) {
        ssize_t got = read(0, buffer, size);
        if (got >= 0)
            return (size_t)got;
        if (errno != EINTR)
            die(125, "read", "stdin");
    }
}

static void read_line(char *line)
{
    size_t length = 0;
    char byte;

    for (;;) {
        if (read_some(&byte, 1) == 0)
            refuse("stdin ended before EXEC", "");
        if (byte == '\n')
            break;
        if (byte == '\0' || length + 1 >= LINE_MAX_BYTES)
            refuse("line refused", "too long, or holds a zero byte");
        line[length++] = byte;
    }
    line[length] = '\0';
}

/* Cut the next space-separated word off *rest. */
static char *word(char **rest)
{
    char *start = *rest;

    if (start == NULL || *start == '\0')
        refuse("line refused", "a word is missing");
    char *space = strchr(start, ' ');
    if (space != NULL)
        *space++ = '\0';
    *rest = space;
    if (*start == '\0')
        refuse("line refused", "an empty word");
    return start;
}

static void last(char *rest)
{
    if (rest != NULL)
        refuse("line refused", "too many words");
}

static unsigned long long number(const char *text, int base, unsigned long long maximum)
{
    char *end;

    if (*text < '0' || *text > '9')
        refuse("not a number", text);
    errno = 0;
    unsigned long long value = strtoull(text, &end, base);
    if (errno != 0 || *end != '\0' || value > maximum)
        refuse("number refused", text);
    return value;
}

static int hex(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

/* Undo percent-encoding in place. */
static char *decode(char *text)
{
    char *out = text;

    for (const char *in = text; *in != '\0'; in++) {
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        int high = hex(in[1]);
        int low = high < 0 ? -1 : hex(in[2]);
        if (low < 0 || (high == 0 && low == 0))
            refuse("percent-encoding refused", text);
        *out++ = (char)(high << 4 | low);
        in += 2;
    }
    *out = '\0';
    return text;
}

/* Open the directory that holds the last component of `path` (made as needed) and point *name at that component.
 * Every step is opened without following links, so nothing outside `home` can be reached. */
static int open_parent(int home, char *path, char **name)
{
    char *component = path;
    int here = fcntl(home, F_DUPFD_CLOEXEC, 0);

    if (here < 0)
        die(125, "open", "HOME");
    for (;;) {
        char *slash = strchr(component, '/');
        if (slash != NULL)
            *slash = '\0';
        if (*component == '\0' || strcmp(component, ".") == 0 || strcmp(component, "..") == 0)
            refuse("path refused", component);
        if (slash == NULL) {
            *name = component;
            return here;
        }
        if (mkdirat(here, component, 0755) < 0 && errno != EEXIST)
            die(125, "mkdir", component);
        int next = openat(here, component, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            die(125, "open", component);
        close(here);
        here = next;
        component = slash + 1;
    }
}

static void make_directory(int home, mode_t mode, char *path)
{
    char *name;
    int parent = open_parent(home, path, &name);

    if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
        die(125, "mkdir", name);
    int made = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made < 0 || fchmod(made, mode) < 0)
        die(125, "mkdir", name);
    close(made);
    close(parent);
}

static void make_file(int home, mode_t mode, unsigned long long size, char *path)
{
    static char buffer[65536];
    char *name;
    int parent = open_parent(home, path, &name);
    int file = openat(parent, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (file < 0)
        die(125, "create", name);
    while (size > 0) {
        size_t got = read_some(buffer, size < sizeof buffer ? (size_t)size : sizeof buffer);
        if (got == 0)
            refuse("stdin ended inside a file", name);
        for (size_t done = 0; done < got;) {
            ssize_t put = write(file, buffer + done, got - done);
            if (put < 0 && errno != EINTR)
                die(125, "write", name);
            if (put > 0)
                done += (size_t)put;
        }
        size -= got;
    }
    if (fchmod(file, mode) < 0 || close(file) < 0)
        die(125, "write", name);
    close(parent);
}

static void make_link(int home, const char *target, char *path)
{
    char *name;
    int parent = open_parent(home, path, &name);

    if (symlinkat(target, parent, name) < 0)
        die(125, "link", name);
    close(parent);
}

static int open_directory(int parent, const char *name)
{
    int opened = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (opened < 0)
        die(125, "copy: open", name);
    return opened;
}

/* Times are kept because Python compares those of a source with what its bytecode says. */
static void keep(int made, const struct stat *about, const char *name)
{
    struct timespec times[2] = {about->st_atim, about->st_mtim};

    if (fchmod(made, about->st_mode & 0777) < 0 || futimens(made, times) < 0 || close(made) < 0)
        die(125, "copy: close", name);
}

static void copy_file(int from, int to, const char *name, const struct stat *about)
{
    int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int made = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (source < 0 || made < 0)
        die(125, "copy: open", name);
    for (off_t left = about->st_size; left > 0;) {
        ssize_t moved = sendfile(made, source, NULL, (size_t)left);
        if (moved < 0 && errno != EINTR)
            die(125, "copy: write", name);
        if (moved == 0)
            break; /* it was cut meanwhile: nobody writes to what is sealed */
        if (moved > 0)
            left -= moved;
    }
    close(source);
    keep(made, about, name);
}

/* Copy files, directories and links below `from` into `to`, as they are. Takes `from`. */
static void copy_tree(int from, int to, int depth)
{
    char target[PATH_MAX];
    struct dirent *entry;
    struct stat about;
    DIR *entries = fdopendir(from);

    if (entries == NULL)
        die(125, "copy: open", "a directory");
    if (depth > DEPTH_MAX)
        refuse("copy", "too deep");
    while (errno = 0, (entry = readdir(entries)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (fstatat(from, name, &about, AT_SYMLINK_NOFOLLOW) < 0)
            die(125, "copy: stat", name);
        if (S_ISREG(about.st_mode)) {
            copy_file(from, to, name, &about);
        } else if (S_ISDIR(about.st_mode)) {
            if (mkdirat(to, name, 0700) < 0)
                die(125, "copy: mkdir", name);
            int made = open_directory(to, name);
            copy_tree(open_directory(from, name), made, depth + 1);
            keep(made, &about, name);
        } else if (S_ISLNK(about.st_mode)) {
            ssize_t length = readlinkat(from, name, target, sizeof target - 1);
            if (length < 0)
                die(125, "copy: read link", name);
            target[length] = '\0';
            if (symlinkat(target, to, name) < 0)
                die(125, "copy: link", name);
        }
    }
    if (errno != 0)
        die(125, "copy: list", "a directory");
    closedir(entries);
}

static void enter(const char *workdir)
{
    char path[LINE_MAX_BYTES];
    size_t length = strlen(workdir);

    if (length == 0 || length >= sizeof path)
        refuse("working directory refused", workdir);
    memcpy(path, workdir, length + 1);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755); /* a failure shows in chdir */
        *slash = '/';
    }
    mkdir(path, 0755);
    if (chdir(path) < 0)
        die(125, "chdir", workdir);
}

static void heartbeat(const char *nonce)
{
    char path[sizeof "/.mark/" + NONCE_MAX];

    if (strlen(nonce) > NONCE_MAX || strchr(nonce, '/') != NULL)
        refuse("nonce refused", nonce);
    snprintf(path, sizeof path, "/.mark/%s", nonce);
    (void)!access(path, F_OK); /* the call itself is the message, to whoever records syscalls */
}

int main(int argc, char **argv)
{
    static char line[LINE_MAX_BYTES];
    struct stat namespace;
    unsigned entries = 0;
    const char *home_path = getenv("HOME");

    errno = 0;
    const char *from = NULL, *to = NULL;
    if (argc > 4 && strcmp(argv[1], "--copy") == 0) {
        from = argv[2];
        to = argv[3];
        argc -= 3;
        argv += 3;
    }
    if (argc < 4 || strcmp(argv[2], "--") != 0)
        refuse("usage", "entry [--copy FROM TO] WORKDIR -- ARGV...");
    if (home_path == NULL)
        refuse("no HOME", "");
    int home = open(home_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (home < 0)
        die(125, "open", home_path);
    if (stat("/proc/self/ns/pid", &namespace) < 0)
        die(125, "stat", "/proc/self/ns/pid");
    mode_t before = umask(0022);
    if (from != NULL) {
        int into = open_directory(AT_FDCWD, to);
        copy_tree(open_directory(AT_FDCWD, from), into, 0);
        close(into);
    }
    if (dprintf(1, "ready %llu\n", (unsigned long long)namespace.st_ino) < 0)
        die(125, "write", "stdout");

    for (;;) {
        char *rest = line;
        read_line(line);
        char *command = word(&rest);

        if (strcmp(command, "EXEC") == 0) {
            char *nonce = word(&rest);
            last(rest);
            heartbeat(nonce);
            enter(argv[1]);
            umask(before);
            execvp(argv[3], argv + 3);
            die(errno == ENOENT || errno == ENOTDIR ? 127 : 126, "can't start", argv[3]);
        }
        if (++entries > ENTRIES_MAX)
            refuse("too many entries", "");
        if (strcmp(command, "DIR") == 0) {
            mode_t mode = (mode_t)number(word(&rest), 8, 0777);
            char *path = decode(word(&rest));
            last(rest);
            make_directory(home, mode, path);
        } else if (strcmp(command, "FILE") == 0) {
            mode_t mode = (mode_t)number(word(&rest), 8, 0777);
            unsigned long long size = number(word(&rest), 10, FILE_MAX_BYTES);
            char *path = decode(word(&rest));
            last(rest);
            total += size;
            if (total > TOTAL_MAX_BYTES)
                refuse("too many bytes", path);
            make_file(home, mode, size, path);
        } else if (strcmp(command, "LINK") == 0) {
            char *target = decode(word(&rest));
            char *path = decode(word(&rest));
            last(rest);
            make_link(home, target, path);
        } else {
            refuse("unknown command", command);
        }
    }
}
