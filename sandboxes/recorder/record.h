/* What the kernel part, the loader and harness/sandbox/records*.py agree on. Everything is little-endian.
 *
 * A record is a `struct record`, then parts (`struct part` and `length` bytes each, no padding) up to `size`.
 * `space` says which of the recorded pid namespaces it is of, and `sequence` counts its records over all rings from 0,
 * drops included: a gap is a lost record. `time` is CLOCK_MONOTONIC in nanoseconds. pid, tid and parent are numbers in
 * the target's own pid namespace, also for nested ones; parent is 0 where it lives
 * outside.
 */
#ifndef RECORD_H
#define RECORD_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

enum record_type {
    TYPE_CALL = 1,  /* a system call that returned (or, with FLAG_ENTERED, one that does not) */
    TYPE_EXEC,      /* a successful exec, before its first instruction */
    TYPE_FORK,      /* number: flags of it (1: a thread); result: the child's pid (tid for a thread) */
    TYPE_EXIT,      /* the last thread of a process ended; result: its wait status */
    TYPE_MARK,      /* access(2) on /.mark/... by the gate or by the namespace's first process */
    TYPE_TRANSFER,  /* bytes read and written through one file or socket by one process; args: struct transfer */
    TYPE_PENDING,   /* made by the loader at the end: a call that was begun and has not returned */
};

enum record_flag {
    FLAG_COMPAT = 1,      /* a 32-bit call: `number` is of the 32-bit table */
    FLAG_X32 = 2,         /* an x32 call */
    FLAG_DENIED = 4,      /* never reached the kernel's own code: a seccomp filter answered */
    FLAG_NESTED = 8,      /* from a pid namespace inside the target's */
    FLAG_ENTERED = 16,    /* told at the beginning of the call: `result` says nothing */
    FLAG_UNREADABLE = 32, /* user memory that could not be read: a part is missing */
    FLAG_DECOY = 64,      /* concerns a file that was planted by the gate */
    FLAG_FIRST = 128,     /* of the namespace's first process (the warden) */
};

struct record {
    u16 size;
    u8 type;
    u8 flags;
    u32 uid;
    u64 sequence;
    u64 time;
    u32 pid;
    u32 tid;
    u32 parent;
    s32 number;
    s64 result; /* with FLAG_ENTERED: whole seconds that it is about to sleep or wait, if any */
    char comm[16];
    u32 space;
    u32 spare;
};

enum part_tag {
    PART_ARGUMENTS = 1, /* 64-bit registers */
    PART_PATH,          /* first path; claim or kernel's */
    PART_PATH2,         /* second path */
    PART_BASE,          /* the directory that the first path is relative to, the kernel's */
    PART_BASE2,
    PART_FILE,          /* the file behind the (first) descriptor, the kernel's path */
    PART_FILE2,
    PART_IDENTITY,      /* struct identity of the file behind the result or the first descriptor */
    PART_SOCKET,        /* struct socket_facts */
    PART_LOCAL,         /* sockaddr: the socket's own */
    PART_REMOTE,        /* sockaddr: its peer */
    PART_ADDRESS,       /* sockaddr given in the call: a claim */
    PART_ARGV,          /* zero-terminated strings */
    PART_ENVIRONMENT,   /* names only, zero-terminated (the loader drops the values) */
    PART_REQUESTED,     /* exec: the name as asked for, the kernel's copy */
    PART_INTERPRETER,   /* exec of a script: what runs it */
    PART_CHANGED,       /* empty: a path was another one when the call began */
    PART_DIRECTORY,     /* exec: the working directory */
};

enum part_flag {
    PART_CUT = 1,      /* longer than its bound */
    PART_CLAIM = 2,    /* from user memory that could change under our eyes */
    PART_DELETED = 4,  /* the file has no name any more */
    PART_DETACHED = 8, /* on no mount that has a path: memfd, pipe, a lazily unmounted tree */
    PART_REVERSED = 16 /* components from the last to the first, each followed by a slash */
};

struct part {
    u8 tag;
    u8 flags;
    u16 length;
};

struct identity {
    u64 inode;
    u32 device;
    u32 mode;
};

struct socket_facts {
    u16 family;
    u16 type;
    u16 protocol;
    u16 state;
};

#define ADDRESS_MAX 128
#define PATH_BYTES 1024
#define NAME_BYTES 256
#define ARGV_BYTES 8192
#define ENVIRONMENT_BYTES 4096
#define MARK_PREFIX "/.mark/"

/* How calls are decoded, set by the loader from the machine's own call numbers. */
enum call_kind {
    KIND_NONE = 0,
    KIND_PLAIN,
    KIND_OPEN,     /* the result is a descriptor */
    KIND_SOCKET,   /* the first argument is a socket; `address`: a sockaddr in the call */
    KIND_MESSAGE,  /* sendmsg */
    KIND_MESSAGES, /* sendmmsg */
    KIND_ACCESS,   /* access family: may be a mark */
    KIND_STAT,     /* recorded for tell-tale places only */
    KIND_MAP,      /* mmap: shared and writable mappings of files only */
    KIND_PROCESS,  /* prctl: some options only */
    KIND_CLONE,    /* failed ones, and such that make namespaces */
    KIND_CLONE3,
    KIND_DIRECTORY, /* chdir */
    KIND_SLEEP,    /* told at the beginning, from a second on; `address`: a timespec or timeval */
    KIND_SLEEP_CLOCK, /* same, clock_nanosleep */
    KIND_WAIT,     /* same; `address`: milliseconds */
    KIND_END,      /* exit_group: told at the beginning */
    KIND_EXEC,     /* failed ones; the others have a record of their own */
    KIND_CLOSE,
    KIND_READ,     /* counted only */
    KIND_WRITE,    /* counted only */
};

enum call_flag {
    CALL_VITAL = 1,   /* goes to the second ring */
    CALL_TRACKED = 2, /* filters look at its arguments: remember whether it was entered */
    CALL_BLOCKING = 4, /* may never return: kept in `pending` while it runs */
    CALL_COMPARED = 16, /* its paths are read at the beginning as well, and compared */
    CALL_HOW = 64,    /* the third argument points to flags: they take its place */
    CALL_WAITS = 32,  /* for descriptors as well: told from WAIT_SECONDS on, and WAITS_MAX times at most */
    CALL_SENDS = 8,   /* a result over zero is bytes written to the first argument */
};

struct call {
    u8 kind;
    u8 flags;
    u8 arguments;       /* how many registers are kept */
    u8 path, path2;     /* number of the argument, from 1; 0: none */
    u8 base, base2;     /* same for their directory descriptors */
    u8 file, file2;     /* same for descriptors whose file is told */
    u8 address;         /* same for a sockaddr; its length is the next argument */
    u8 spare[6];
};

#define CALLS 512
#define RINGS 3 /* in the order in which they are read: marks, vital, bulk */
enum ring { RING_MARKS, RING_VITAL, RING_BULK };

#define TRANSFERS 2048    /* files and sockets that are open and used, of all recorded processes together */
#define TRANSFER_STEPS 16 /* how many places are looked at for one */
struct transfer {
    u64 key; /* 0: free */
    u64 inode;
    u32 device;
    u32 mode;
    u32 process; /* the machine's number */
    u32 pid;     /* the target's number */
    u64 read;
    u64 written;
    u64 time;
    u32 space;
    u32 spare;
};

#define PENDINGS 1024
#define CLAIM_BYTES 64
struct pending {
    u64 task; /* 0: free */
    u64 time;
    u32 pid;
    u32 tid;
    s32 number;
    u32 claimed;
    u32 space;
    u32 spare;
    u64 arguments[4];
    u8 claim[CLAIM_BYTES];
};

#define DECOYS 4096
#define STRIPES 16

#define WAIT_SECONDS 30
#define WAITS_MAX 1024

/* What is kept of one recorded pid namespace. A space is used once: what was in use a moment ago is never cleared. */
#define SPACES 16
struct space {
    u32 inode;     /* of the pid namespace; 0: nothing is recorded */
    u32 level;     /* its depth, found at the first match */
    u64 pointer;   /* its address and its init's start, found at the first match: numbers are reused, these together */
    u64 started;   /* are not */
    u32 gate;      /* 1 once the gate has made its mark */
    u32 waits;
    u64 sequence;
    u64 sent[RINGS];
    u64 dropped[RINGS];
    u64 transfers_missed;
    u64 pending_missed;
    u64 storage_missed;
    u64 entered[16];  /* bitmaps over call numbers: begun in the kernel */
    u64 returned[16]; /* left the kernel: where `entered` lacks it, always denied */
    u64 compat[16];   /* same for 32-bit calls */
    u64 compat_returned[16];
};

#define ENDED 256

/* Shared memory of kernel part and loader: neither needs a system call to read or set it. */
struct shared {
    u32 used; /* how many spaces were ever in use */
    u32 spare;
    struct space spaces[SPACES];
    u64 ends; /* processes that ended; `ended` has the last ones, by the machine's number */
    u32 ended[ENDED];
    u64 matched[STRIPES][8]; /* system calls of targets, striped: [n][0] counts */
    struct call calls[CALLS];
    u64 decoys[DECOYS];
    struct transfer transfers[TRANSFERS];
    struct pending pending[PENDINGS];
};

/* The stream on stdout: frames, `struct frame` and `size` bytes. */
enum frame_kind {
    FRAME_READY = 'R',    /* text: "arch <name>\n", then "<number> <name>\n" per call, then "32 <number> <name>\n" */
    FRAME_ARMED = 'A',    /* text: the number of the space that is recorded now */
    FRAME_RECORDS = 'E',  /* records, each whole */
    FRAME_READ = 'W',     /* struct reached */
    FRAME_COUNTERS = 'C', /* text: "<name> <value>\n" each, the space's number first */
    FRAME_END = 'Z',      /* text: "<space> " and why its record ended; nothing of that space comes after it */
    FRAME_FAILED = 'F',   /* text: why it could not begin */
};

struct frame {
    u8 kind;
    u8 spare[3];
    u32 size;
};

struct reached {
    u32 space;
    u32 spare;
    u64 sequence; /* no record of that space with a lower one will come */
};

#endif
