/*
 * starts.c - the limit of this machine: how fast `sh -c COMMAND` can be started and waited for,
 * with nothing around it.
 *
 * usage: starts [-b] COUNT IN_FLIGHT COMMAND; prints starts a second. With -b each gets a stdin
 * that holds the instant of the first start (microseconds), as a handler of a burst would. starts
 * -r COUNT COMMAND; one at a time, after rests of 0.1 to 1 s: what the caches held is gone. Its
 * stdin holds the instant.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void start_rested(long count, const char *command)
{
    for (long i = 0; i < count; i++) {
        char body[32];
        int fd;

        tool_sleep_until(tool_wall_us() + 100000 + random() % 900000);
        snprintf(body, sizeof body, "%lld", (long long)tool_wall_us());
        fd = tool_body(body, strlen(body));
        tool_start(command, fd, -1);
        close(fd);
        if (waitpid(-1, NULL, 0) < 0)
            tool_die("waitpid");
    }
}

int main(int argc, char **argv)
{
    int with_body = argc > 1 && strcmp(argv[1], "-b") == 0;
    long count, in_flight, started = 0;
    char body[32];
    int64_t from;

    if (argc == 4 && strcmp(argv[1], "-r") == 0) {
        start_rested(tool_number(argv[2], "COUNT"), argv[3]);
        return 0;
    }
    argv += with_body;
    if (argc - with_body != 4)
        tool_die("usage: starts [-b] COUNT IN_FLIGHT COMMAND | -r COUNT COMMAND");
    count = tool_number(argv[1], "COUNT");
    in_flight = tool_number(argv[2], "IN_FLIGHT");
    snprintf(body, sizeof body, "%lld", (long long)tool_wall_us());
    from = tool_steady_us();
    for (long ended = 0; ended < count;) {
        if (started < count && started - ended < in_flight) {
            int fd = with_body ? tool_body(body, strlen(body)) : -1;

            tool_start(argv[3], fd, -1);
            if (fd >= 0)
                close(fd);
            started++;
        } else if (waitpid(-1, NULL, 0) > 0) {
            ended++;
        } else {
            tool_die("waitpid");
        }
    }
    tool_print_rate(count, from);
    return 0;
}
