/*
 * redis.c - a client and a worker of a Redis list, the reliable way: a task stays in a second list
 * until it is done. The server is at $BENCH_REDIS (unix socket).
 *
 * usage: redis put COUNT BODY       pipelined; prints puts a second
 *        redis work COUNT CONNECTIONS [COMMAND]
 *                                   until COUNT are done, each by COMMAND (none: in the process);
 *                                   prints tasks a second
 */
#include "tool.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char *command; /* of work */

struct worker {
    redisContext *redis;
    char list[32]; /* of its unfinished tasks */
};

static redisContext *dial(void)
{
    redisContext *c = redisConnectUnix(getenv("BENCH_REDIS"));

    if (!c || c->err)
        tool_die("redis: %s", c ? c->errstr : "memory");
    return c;
}

static redisReply *checked(void *reply)
{
    redisReply *r = reply;

    if (!r || r->type == REDIS_REPLY_ERROR) {
        errno = 0;
        tool_die("redis: %s", r ? r->str : "connection lost");
    }
    return r;
}

static void put(long count, const char *body)
{
    redisContext *c = dial();
    int64_t from = tool_steady_us();

    for (long sent = 0, said = 0; said < count;) {
        long most = sent + 500 < count ? sent + 500 : count;

        for (; sent < most; sent++)
            redisAppendCommand(c, "LPUSH bench %ld:%s", sent, body);
        for (; said < sent; said++) {
            void *reply = NULL;

            redisGetReply(c, &reply);
            freeReplyObject(checked(reply));
        }
    }
    tool_print_rate(count, from);
    redisFree(c);
}

static void *begin(void)
{
    struct worker *w = malloc(sizeof *w);

    if (!w)
        tool_die("memory");
    w->redis = dial();
    snprintf(w->list, sizeof w->list, "bench:%ld", (long)getpid());
    return w;
}

static void work_one(void *arg)
{
    struct worker *w = arg;
    redisReply *task = checked(redisCommand(w->redis, "BRPOPLPUSH bench %s 0", w->list));

    if (command)
        tool_run(command, task->str, (size_t)task->len);
    freeReplyObject(
        checked(redisCommand(w->redis, "LREM %s 1 %b", w->list, task->str, (size_t)task->len)));
    freeReplyObject(task);
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "put") == 0 && argc == 4) {
        put(tool_number(argv[2], "COUNT"), argv[3]);
    } else if (strcmp(verb, "work") == 0 && argc >= 4) {
        command = argv[4];
        tool_crew(tool_number(argv[3], "CONNECTIONS"), tool_number(argv[2], "COUNT"), begin,
                  work_one);
    } else {
        errno = 0;
        tool_die("usage: redis put COUNT BODY | work COUNT CONNECTIONS [COMMAND]");
    }
    return 0;
}
