/*
 * kept.c - a worker that stays and does nothing but answer. With a FILE, it appends the record of
 * stamp.c for each task, whose body is the planned instant; with -s, it is no worker: it sleeps
 * until each of the instants on stdin, which is the best that anything can do.
 *
 * usage: kept [FILE], kept -s FILE <PLAN
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t wall_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int stamp(int fd, int64_t planned)
{
    int64_t record[2] = {planned, wall_us()};

    return fd < 0 || write(fd, record, sizeof record) == sizeof record;
}

static int sleep_until(int fd, int64_t at)
{
    struct timespec t = {at / 1000000, at % 1000000 * 1000};

    return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == 0 && stamp(fd, at);
}

int main(int argc, char **argv)
{
    const int sleeps = argc > 1 && strcmp(argv[1], "-s") == 0;
    int fd = argc > 1 ? open(argv[argc - 1], O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    char line[1 << 16], answer[64];

    if (!sleeps && dprintf(3, "{\"ready\":true}\n") < 0)
        return 75;
    while (fgets(line, sizeof line, stdin)) {
        const char *id = strstr(line, "\"id\":"), *body = strstr(line, "\"body\":\"");

        if (!(sleeps ? sleep_until(fd, strtoll(line, NULL, 10))
                     : stamp(fd, body ? strtoll(body + 8, NULL, 10) : 0)))
            return 75;
        if (sleeps || !id)
            continue;
        int n = snprintf(answer, sizeof answer, "{\"id\":%.*s,\"result\":\"done\"}\n",
                         (int)strspn(id + 5, "0123456789"), id + 5);
        if (write(3, answer, (size_t)n) != n)
            return 75;
    }
    return 0;
}
