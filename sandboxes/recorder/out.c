/* Stdout: frames wait in a buffer, and are written as far as the other side takes them. */
#include "loader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned char out[OUT_BYTES];
unsigned out_from, out_to;
int out_broken;
static char complaint[2048];

void flush(void)
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

unsigned room(void)
{
    if (out_from > OUT_BYTES / 2) {
        memmove(out, out + out_from, out_to - out_from);
        out_to -= out_from;
        out_from = 0;
    }
    return OUT_BYTES - out_to;
}

void say(u8 kind, const void *data, size_t size)
{
    struct frame head = {.kind = kind, .size = (u32)size};

    if (room() < sizeof head + size)
        return; /* only answers get here, and the reserve is for them */
    memcpy(out + out_to, &head, sizeof head);
    memcpy(out + out_to + sizeof head, data, size);
    out_to += (unsigned)(sizeof head + size);
}

int fail(const char *what, int error)
{
    static char text[sizeof complaint + 512];
    int size = snprintf(text, sizeof text, "%s: %s\n%s", what, strerror(error), complaint);

    say(FRAME_FAILED, text, size < (int)sizeof text ? (size_t)size : sizeof text - 1);
    flush();
    return 3;
}

/* The last words of libbpf, which has the verifier's in them. */
int keep_complaint(enum libbpf_print_level level, const char *format, va_list arguments)
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
