/*
 * beanstalk.c - a client and a worker of beanstalkd, at $BENCH_BEANSTALK (unix socket).
 *
 * usage: beanstalk put COUNT BODY     ready at once, pipelined; prints puts a second
 *        beanstalk later [MS]         planned instants (microseconds) from stdin: each is put a
 *                                     second before or, with MS, all at once MS before the first;
 *                                     delays of beanstalkd are whole seconds
 *        beanstalk work COUNT CONNECTIONS [COMMAND]
 *                                     until COUNT are done, each by COMMAND (none: in the process);
 *                                     prints tasks a second
 */
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char *command; /* of work */

static void *dial(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = getenv("BENCH_BEANSTALK");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FILE *f;

    if (!path || strlen(path) >= sizeof to.sun_path)
        tool_die("BENCH_BEANSTALK");
    strcpy(to.sun_path, path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        tool_die("%s", path);
    f = fdopen(fd, "r+");
    if (!f)
        tool_die("fdopen");
    return f;
}

/* The next line, which begins with this word. */
static void expect(FILE *f, const char *word, char line[256])
{
    if (!fgets(line, 256, f) || strncmp(line, word, strlen(word)) != 0) {
        errno = 0;
        tool_die("beanstalkd says %s", line);
    }
}

static void put_one(FILE *f, int delay, const char *body)
{
    fprintf(f, "put 1 %d 60 %zu\r\n%s\r\n", delay, strlen(body), body);
}

static void put(long count, const char *body)
{
    FILE *f = dial();
    char line[256];
    int64_t from = tool_steady_us();

    for (long sent = 0, said = 0; said < count;) {
        long most = sent + 500 < count ? sent + 500 : count;

        while (sent < most)
            put_one(f, 0, body), sent++;
        fflush(f);
        while (said < sent)
            expect(f, "INSERTED", line), said++;
    }
    tool_print_rate(count, from);
    fclose(f);
}

static void later(long ms)
{
    FILE *f = dial();
    char line[256], body[32];
    long long at;
    long n = 0;

    while (scanf("%lld", &at) == 1) {
        snprintf(body, sizeof body, "%lld", at);
        if (ms == 0 || n == 0)
            tool_sleep_until(at - (ms ? ms * 1000 : 1000000));
        put_one(f, ms ? (int)(ms / 1000) : 1, body);
        n++;
        if (ms == 0) {
            fflush(f);
            expect(f, "INSERTED", line);
        }
    }
    fflush(f);
    while (ms && n-- > 0)
        expect(f, "INSERTED", line);
    fclose(f);
}

static void work_one(void *arg)
{
    FILE *f = arg;
    char line[256], body[1 << 16];
    unsigned long long id;
    size_t size;

    fputs("reserve\r\n", f);
    fflush(f);
    expect(f, "RESERVED", line);
    if (sscanf(line, "RESERVED %llu %zu", &id, &size) != 2 || size + 2 > sizeof body ||
        fread(body, 1, size + 2, f) != size + 2)
        tool_die("beanstalkd says %s", line);
    if (command)
        tool_run(command, body, size);
    fprintf(f, "delete %llu\r\n", id);
    fflush(f);
    expect(f, "DELETED", line);
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "put") == 0 && argc == 4) {
        put(tool_number(argv[2], "COUNT"), argv[3]);
    } else if (strcmp(verb, "later") == 0) {
        later(argc > 2 ? tool_number(argv[2], "MS") : 0);
    } else if (strcmp(verb, "work") == 0 && argc >= 4) {
        command = argv[4];
        tool_crew(tool_number(argv[3], "CONNECTIONS"), tool_number(argv[2], "COUNT"), dial,
                  work_one);
    } else {
        errno = 0;
        tool_die("usage: beanstalk put COUNT BODY | later [MS] | work COUNT CONNECTIONS [COMMAND]");
    }
    return 0;
}
