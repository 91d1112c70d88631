/* A later clock: preloaded into a program, it moves the time of day that the program reads, and no other clock.
 *
 *   LD_PRELOAD=/usr/local/lib/libclock.so.1 FAKETIME=+400d PROGRAM...
 *
 * FAKETIME is "+<days>d", one of the forms of libfaketime; anything else moves nothing. Whatever is inherited with the
 * environment is moved too. Not moved are static programs, and those that ask the kernel without the C library.
 *
 * Why not libfaketime: with 0.9.10, which Debian 12 has, either every wait of Python 3.11 with a timeout hangs (its
 * monotonic clock moved) or time.sleep() raises EINVAL (not moved; its issues 390 and 426), and it leaves a semaphore
 * and a mapping in /dev/shm for each program, which the record would tell of as the target's.
 *
 * What is moved: reading the wall clock. A deadline that was reckoned from what was read is moved back before the C
 * library sees it: one that lies later than half of the way is such a deadline, on whatever clock; monotonic ones
 * count from the machine's start, and stay below. Times of files are the file system's. No state but the offset, no
 * lock, no allocation, no file: safe after fork and in signal handlers, as the calls themselves are.
 *
 * It stands on no C library: everything of it is a weak reference, and found behind us (RTLD_NEXT).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>

#define DAY 86400L
#define DAYS_MAX 36500L

#pragma weak dlsym
#pragma weak getenv
#pragma weak __errno_location

typedef int (*gettime)(clockid_t, struct timespec *);

static gettime behind;

/* What FAKETIME says, in seconds; 0 for what is not "+<days>d". */
static long parsed(const char *text)
{
    long days = 0;

    if (text == NULL || *text++ != '+')
        return 0;
    for (; *text >= '0' && *text <= '9'; text++)
        if ((days = days * 10 + (*text - '0')) > DAYS_MAX)
            return 0;
    return text[0] == 'd' && text[1] == '\0' ? days * DAY : 0;
}

/* How far the clock is ahead. Threads that ask at once find the same. */
static long ahead(void)
{
    static long known = -1;
    long found = __atomic_load_n(&known, __ATOMIC_RELAXED);

    if (found < 0) {
        found = getenv != NULL ? parsed(getenv("FAKETIME")) : 0;
        __atomic_store_n(&known, found, __ATOMIC_RELAXED);
    }
    return found;
}

static void *next_of(const char *name)
{
    return dlsym != NULL ? dlsym(RTLD_NEXT, name) : NULL;
}

/* Looked up here and never at a reading: looking up may allocate, and an allocator may read the clock. */
__attribute__((constructor)) static void begin(void)
{
    behind = (gettime)next_of("clock_gettime");
}

static int failed(int reason)
{
    if (__errno_location != NULL)
        *__errno_location() = reason;
    return -1;
}

static long asked(clockid_t clock, struct timespec *now)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long)SYS_clock_gettime), "D"((long)clock), "S"(now)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_clock_gettime;
    register long first __asm__("x0") = clock;
    register struct timespec *second __asm__("x1") = now;
    __asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second) : "memory");
    return first;
#else
#error "not written for this machine"
#endif
}

/* The clock as it is. */
static int read_clock(clockid_t clock, struct timespec *now)
{
    if (behind != NULL)
        return behind(clock, now);
    long result = asked(clock, now);
    return result < 0 ? failed((int)-result) : 0;
}

static int is_wall(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_REALTIME_ALARM
        || clock == CLOCK_TAI;
}

/* Reading the time of day */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = read_clock(clock, now);

    if (result == 0 && is_wall(clock))
        now->tv_sec += ahead();
    return result;
}

time_t time(time_t *place)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0)
        return -1;
    if (place != NULL)
        *place = now.tv_sec;
    return now.tv_sec;
}

static void no_zone(struct timezone *zone)
{
    if (zone != NULL)
        *zone = (struct timezone){0, 0};
}

int gettimeofday(struct timeval *restrict place, void *restrict zone)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    place->tv_sec = now.tv_sec;
    place->tv_usec = now.tv_nsec / 1000;
    no_zone(zone);
    return 0;
}

int timespec_get(struct timespec *now, int base)
{
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

/* Waiting until a time of day */

/* `until`, or what it is on the clock as it is: then in `place`. */
static const struct timespec *earlier(const struct timespec *until, struct timespec *place)
{
    struct timespec now;
    long by = ahead();

    if (until == NULL || by == 0 || read_clock(CLOCK_REALTIME, &now) != 0 || until->tv_sec <= now.tv_sec + by / 2)
        return until;
    place->tv_sec = until->tv_sec - by;
    place->tv_nsec = until->tv_nsec;
    return place;
}

/* Defines a function that waits: `missing` is what it returns where there is none behind us. */
#define WAIT(name, parameters, arguments, missing)                                                                     \
    int name parameters                                                                                                \
    {                                                                                                                  \
        static int(*next) parameters;                                                                                  \
        struct timespec place;                                                                                         \
                                                                                                                       \
        if (next == NULL && (next = (int(*) parameters)next_of(#name)) == NULL)                                        \
            return missing;                                                                                            \
        return next arguments;                                                                                         \
    }

#define UNTIL earlier(until, &place)

WAIT(pthread_cond_timedwait,
     (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock, const struct timespec *restrict until),
     (condition, lock, UNTIL), ENOSYS)
WAIT(pthread_cond_clockwait,
     (pthread_cond_t *restrict condition, pthread_mutex_t *restrict lock, clockid_t clock,
      const struct timespec *restrict until),
     (condition, lock, clock, UNTIL), ENOSYS)
WAIT(pthread_mutex_timedlock, (pthread_mutex_t *restrict lock, const struct timespec *restrict until), (lock, UNTIL),
     ENOSYS)
WAIT(pthread_mutex_clocklock, (pthread_mutex_t *lock, clockid_t clock, const struct timespec *until),
     (lock, clock, UNTIL), ENOSYS)
WAIT(pthread_rwlock_timedrdlock, (pthread_rwlock_t *restrict lock, const struct timespec *restrict until),
     (lock, UNTIL), ENOSYS)
WAIT(pthread_rwlock_timedwrlock, (pthread_rwlock_t *restrict lock, const struct timespec *restrict until),
     (lock, UNTIL), ENOSYS)
WAIT(pthread_rwlock_clockrdlock,
     (pthread_rwlock_t *restrict lock, clockid_t clock, const struct timespec *restrict until), (lock, clock, UNTIL),
     ENOSYS)
WAIT(pthread_rwlock_clockwrlock,
     (pthread_rwlock_t *restrict lock, clockid_t clock, const struct timespec *restrict until), (lock, clock, UNTIL),
     ENOSYS)
WAIT(sem_timedwait, (sem_t *restrict semaphore, const struct timespec *restrict until), (semaphore, UNTIL),
     failed(ENOSYS))
WAIT(sem_clockwait, (sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until),
     (semaphore, clock, UNTIL), failed(ENOSYS))
WAIT(mtx_timedlock, (mtx_t *restrict lock, const struct timespec *restrict until), (lock, UNTIL), thrd_error)
WAIT(cnd_timedwait, (cnd_t *restrict condition, mtx_t *restrict lock, const struct timespec *restrict until),
     (condition, lock, UNTIL), thrd_error)
WAIT(clock_nanosleep, (clockid_t clock, int flags, const struct timespec *until, struct timespec *left),
     (clock, flags, flags & TIMER_ABSTIME ? UNTIL : until, left), ENOSYS)

/* The same for timers, of which only the first time is one of day. */
static const struct itimerspec *timer_earlier(int absolute, const struct itimerspec *value, struct itimerspec *place)
{
    if (!absolute || value == NULL)
        return value;
    place->it_interval = value->it_interval;
    place->it_value = *earlier(&value->it_value, &place->it_value);
    return place;
}

int timerfd_settime(int timer, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    static int (*next)(int, int, const struct itimerspec *, struct itimerspec *);
    struct itimerspec place;

    if (next == NULL && (next = next_of("timerfd_settime")) == NULL)
        return failed(ENOSYS);
    return next(timer, flags, timer_earlier(flags & TFD_TIMER_ABSTIME, value, &place), old);
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict value, struct itimerspec *restrict old)
{
    static int (*next)(timer_t, int, const struct itimerspec *, struct itimerspec *);
    struct itimerspec place;

    if (next == NULL && (next = next_of("timer_settime")) == NULL)
        return failed(ENOSYS);
    return next(timer, flags, timer_earlier(flags & TIMER_ABSTIME, value, &place), old);
}
