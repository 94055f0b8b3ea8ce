/*
 * orphans.c - keeps track of adopted processes.
 *
 * Invariant: if the kernel lists them, an orphan's seen_at is never earlier than when it became
 * one.
 */
#include "runner/orphans.h"

#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LIST_PIECE 4096

void orphans_init(struct orphans *o)
{
    char path[64];
    int self = (int)getpid();

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", self, self);
    *o = (struct orphans){.list_fd = open(path, O_RDONLY | O_CLOEXEC)};
}

static void note(struct orphans *o, pid_t pid, int64_t now)
{
    size_t i = 0;

    while (i < o->count && o->items[i].pid != pid)
        i++;
    if (i == o->count) {
        MEM_ROOM(o->items, o->count, o->cap);
        o->items[o->count++] = (struct orphan){.pid = pid, .seen_at = now};
    }
    o->items[i].here = true;
}

static void read_list(struct orphans *o, int64_t now)
{
    char text[LIST_PIECE + 1];
    size_t kept = 0;
    off_t at = 0;
    ssize_t n;

    while (o->list_fd >= 0 && (n = pread(o->list_fd, text + kept, LIST_PIECE - kept, at)) > 0) {
        char *p = text, *end, *space;
        at += n;
        text[kept + (size_t)n] = '\0';
        while ((space = strchr(p, ' '))) { /* each pid is followed by one */
            note(o, (pid_t)strtol(p, &end, 10), now);
            p = space + 1;
        }
        kept = strlen(p);
        memmove(text, p, kept);
    }
}

void orphans_look(struct orphans *o, int64_t now)
{
    size_t kept = 0;

    for (size_t i = 0; i < o->count; i++)
        o->items[i].here = false;
    read_list(o, now);
    for (size_t i = 0; i < o->count; i++)
        if (o->items[i].here)
            o->items[kept++] = o->items[i];
    o->count = kept;
}

bool orphans_since(const struct orphans *o, int64_t start_at)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->items[i].seen_at >= start_at)
            return true;
    return o->list_fd < 0;
}
