/*
 * stamp.c - the handler whose starts are timed. Its first instruction asks the clock; then it
 * appends one record to a file: the planned instant that its stdin holds (microseconds), or else
 * $DQ_EXPECTED_TIME, and the instant of its start. A record is one write to a file opened for
 * appending, so that handlers need no lock.
 *
 * usage: stamp FILE; linked statically, as it is to cost little.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int64_t planned_by_environment(void)
{
    const char *text = getenv("DQ_EXPECTED_TIME");
    struct tm tm = {0};
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

    return rest ? (int64_t)timegm(&tm) * 1000000 + (int64_t)(strtod(rest, NULL) * 1e6 + 0.5) : 0;
}

int main(int argc, char **argv)
{
    struct timespec t;
    int64_t record[2];
    char body[32] = "";
    int fd;

    clock_gettime(CLOCK_REALTIME, &t);
    record[1] = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
    if (argc != 2 || read(0, body, sizeof body - 1) < 0)
        return 64;
    record[0] = strtoll(body, NULL, 10);
    if (record[0] == 0)
        record[0] = planned_by_environment();
    fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
    return fd >= 0 && write(fd, record, sizeof record) == sizeof record ? 0 : 75;
}
