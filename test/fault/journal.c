/*
 * journal.c - the handler of the fault tests: writes down that it starts, lives and ends, and
 * behaves as it is told.
 *
 *   journal FILE [WORD...]     words are taken from a body that begins with '@', too
 *     ms=N        runs for N milliseconds (a sign of life every 50)
 *     until=PATH  runs until there is such a file
 *     exit=N      ends with that status
 *     fail=N      ends with status 1 up to attempt N
 *     ignore      ignores TERM
 *     batch       reads JSON lines
 *     done=N      writes the verdict "done" for all but each Nth task
 *     poison=HOW  of a batch, at a task with the body "poison": ends with that status, or hang,
 *                 kill (itself), runner or poller (kills that), garble (writes no verdict)
 *     say         writes the verdict "done" on each task before that one
 *     kill=WHO    sends KILL to runner, poller or both before anything else
 *     fork=N      leaves a process in its group behind for N ms, which holds stdout
 *     setsid=N    the same in a session of its own
 *     out=N       writes N bytes, NULs and invalid UTF-8 among them
 *     stay        is a process that stays: the words that are about a task come from its body
 *     boot=N      until it is ready, in milliseconds
 *     die=WHEN    of a first attempt: what it does to itself, see die_at
 *
 * Lines: S id attempt token pid ppid steady_us wall_us bytes hash
 *        B id token pid steady_us
 *        E id token pid steady_us status
 * Invariant: each line is one write to a file opened with O_APPEND; S and E are on the disk before
 * the next step is taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BEAT_MS 50
#define TASKS_MAX 8192

struct orders {
    long ms, exit, fail, fork, setsid, out, done;
    long boot;
    bool ignore, batch, say, stay;
    char kill[16], until[200], poison[16], die[16];
};

struct ref {
    uint64_t id, attempt, token;
    bool poison, ended;
};

static int file;
static struct ref tasks[TASKS_MAX];
static size_t task_count;

static int64_t now_us(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void put(const char *text, size_t len, bool sync)
{
    if (write(file, text, len) != (ssize_t)len || (sync && fdatasync(file) != 0))
        _exit(99);
}

static void put_all(char kind, const char *rest, bool sync)
{
    static char lines[TASKS_MAX * 128];
    size_t len = 0;
    const int64_t at = now_us(CLOCK_MONOTONIC), wall = now_us(CLOCK_REALTIME);

    for (size_t i = 0; i < task_count; i++) {
        const struct ref *r = &tasks[i];
        size_t room = sizeof lines - len;
        int n = 0;

        if (r->ended)
            continue;
        if (kind == 'S')
            n = snprintf(lines + len, room,
                         "S %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d %" PRId64 " %" PRId64 " %s\n",
                         r->id, r->attempt, r->token, (int)getpid(), (int)getppid(), at, wall,
                         rest);
        else
            n = snprintf(lines + len, room, "%c %" PRIu64 " %" PRIu64 " %d %" PRId64 " %s\n", kind,
                         r->id, r->token, (int)getpid(), at, rest);
        len += (size_t)n;
    }
    put(lines, len, sync);
}

static void take_word(struct orders *o, const char *word)
{
    const struct {
        const char *name;
        long *value;
    } numbers[] = {{"ms=", &o->ms},     {"exit=", &o->exit},     {"fail=", &o->fail},
                   {"fork=", &o->fork}, {"setsid=", &o->setsid}, {"out=", &o->out},
                   {"done=", &o->done}, {"boot=", &o->boot}};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strncmp(word, numbers[i].name, strlen(numbers[i].name)) == 0)
            *numbers[i].value = strtol(word + strlen(numbers[i].name), NULL, 10);
    if (strncmp(word, "kill=", 5) == 0)
        snprintf(o->kill, sizeof o->kill, "%s", word + 5);
    if (strncmp(word, "until=", 6) == 0)
        snprintf(o->until, sizeof o->until, "%s", word + 6);
    if (strncmp(word, "poison=", 7) == 0)
        snprintf(o->poison, sizeof o->poison, "%s", word + 7);
    if (strncmp(word, "die=", 4) == 0)
        snprintf(o->die, sizeof o->die, "%s", word + 4);
    o->stay |= strcmp(word, "stay") == 0;
    o->ignore |= strcmp(word, "ignore") == 0;
    o->say |= strcmp(word, "say") == 0;
    o->batch |= strcmp(word, "batch") == 0;
}

static uint64_t member(const char *line, const char *name)
{
    const char *p = strstr(line, name);

    return p ? strtoull(p + strlen(name), NULL, 10) : 0;
}

static uint64_t variable(const char *name)
{
    const char *p = getenv(name);

    return p ? strtoull(p, NULL, 10) : 0;
}

static void read_batch(void)
{
    char *line = NULL;
    size_t cap = 0;

    while (task_count < TASKS_MAX && getline(&line, &cap, stdin) > 0)
        tasks[task_count++] =
            (struct ref){member(line, "\"id\":"), member(line, "\"attempt\":"),
                         member(line, "\"token\":"), !!strstr(line, "\"poison\""), false};
    free(line);
}

/* FNV-1a of all of stdin, and the orders in it. */
static uint64_t read_body(struct orders *o, uint64_t *ret_len)
{
    static char data[1 << 16];
    char head[256] = "";
    uint64_t hash = UINT64_C(14695981039346656037);
    ssize_t n;

    while ((n = read(0, data, sizeof data)) > 0) {
        if (*ret_len == 0)
            snprintf(head, sizeof head, "%.*s", (int)n, data);
        for (ssize_t i = 0; i < n; i++)
            hash = (hash ^ (unsigned char)data[i]) * UINT64_C(1099511628211);
        *ret_len += (uint64_t)n;
    }
    if (head[0] == '@')
        for (char *word = strtok(head + 1, " \n"); word; word = strtok(NULL, " \n"))
            take_word(o, word);
    return hash;
}

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512] = "";
    int parent = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "r");
    if (f && fgets(text, sizeof text, f) && strrchr(text, ')'))
        sscanf(strrchr(text, ')') + 1, " %*c %d", &parent);
    if (f)
        fclose(f);
    return parent;
}

static void kill_dqd(const char *who)
{
    const pid_t runner = getppid(), poller = parent_of(runner);

    if (runner <= 1 || poller <= 1)
        return;
    if (strcmp(who, "runner") != 0)
        kill(poller, SIGKILL);
    if (strcmp(who, "poller") != 0)
        kill(runner, SIGKILL);
}

static void rest_ms(long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

static void leave_behind(long ms, bool own_session)
{
    if (ms == 0 || fork() != 0)
        return;
    if (own_session)
        setsid();
    for (long left = ms; left > 0; left -= BEAT_MS) {
        put_all('G', "0", false);
        rest_ms(BEAT_MS);
    }
    _exit(0);
}

static void write_noise(long bytes)
{
    static char block[1 << 16];

    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)(i * 7);
    for (long left = bytes; left > 0; left -= (long)sizeof block)
        if (write(1, block, left < (long)sizeof block ? (size_t)left : sizeof block) < 0)
            return;
}

static void live(long ms)
{
    const int64_t end = now_us(CLOCK_MONOTONIC) + ms * 1000;

    for (int64_t left; (left = end - now_us(CLOCK_MONOTONIC)) > 0;) {
        rest_ms(left > BEAT_MS * 1000 ? BEAT_MS : (long)(left / 1000) + 1);
        if (left > BEAT_MS * 1000)
            put_all('B', "", false);
    }
}

static void await(const char *path)
{
    while (access(path, F_OK) != 0) {
        rest_ms(BEAT_MS);
        put_all('B', "", false);
    }
}

static void say_verdicts(long every)
{
    for (size_t i = 0; i < task_count; i++)
        if (every < 2 || i % (size_t)every)
            printf("{\"id\":%" PRIu64 ",\"result\":\"done\"}\n", tasks[i].id);
    fflush(stdout);
}

/* The first task with that body is what it cannot stand. */
static void meet_poison(struct orders *o)
{
    size_t at = 0;
    char line[128];

    for (; at < task_count && !tasks[at].poison; at++) {
        if (!o->say)
            continue;
        snprintf(line, sizeof line, "E %" PRIu64 " %" PRIu64 " %d %" PRId64 " 0\n", tasks[at].id,
                 tasks[at].token, (int)getpid(), now_us(CLOCK_MONOTONIC));
        put(line, strlen(line), true);
        printf("{\"id\":%" PRIu64 ",\"result\":\"done\"}\n", tasks[at].id);
        tasks[at].ended = true;
    }
    fflush(stdout);
    if (at == task_count)
        return;
    if (strcmp(o->poison, "kill") == 0) {
        kill(getpid(), SIGKILL);
    } else if (strcmp(o->poison, "hang") == 0) {
        pause();
    } else if (strcmp(o->poison, "runner") == 0 || strcmp(o->poison, "poller") == 0) {
        rest_ms(500); /* until it is recorded how others ended before */
        kill_dqd(o->poison);
    } else if (strcmp(o->poison, "garble") == 0) {
        puts("{'unexpected': 'body'}");
    } else {
        o->exit = strtol(o->poison, NULL, 10);
    }
}

#define REPLY 3

static void answer_late(int signal)
{
    char text[64];
    int len =
        snprintf(text, sizeof text, "{\"id\":%" PRIu64 ",\"result\":\"done\"}\n", tasks[0].id);

    (void)signal;
    _exit(write(REPLY, text, (size_t)len) < 0);
}

/* What it does to itself at this moment, if it is the one in the order. */
static void die_at(const struct orders *o, const char *moment)
{
    static char x[1 << 16];

    if (tasks[0].attempt > 1 || strncmp(o->die, moment, strlen(moment)) != 0)
        return;
    const char *how = o->die + strlen(moment);
    if (strcmp(how, "-stop") == 0) {
        kill(getpid(), SIGSTOP);
    } else if (strcmp(how, "-deaf") == 0) {
        close(0);
        pause();
    } else if (strcmp(how, "-mute") == 0) {
        close(REPLY);
        pause();
    } else if (strcmp(how, "-late") == 0) {
        signal(SIGTERM, answer_late);
        pause();
    } else if (strcmp(how, "-leak") == 0) {
        while (dup(0) >= 0)
            ;
    } else if (strcmp(how, "-line") == 0) {
        memset(x, 'x', sizeof x);
        for (long left = 1L << 30; left > 0 && write(REPLY, x, sizeof x) > 0;)
            left -= (long)sizeof x;
        pause();
    } else {
        kill(getpid(), SIGKILL);
    }
}

static void do_task(const struct orders *o)
{
    char text[128];
    int len =
        snprintf(text, sizeof text, "{\"id\":%" PRIu64 ",\"result\":\"done\"}\n", tasks[0].id);

    const bool half = strcmp(o->die, "half") == 0 && tasks[0].attempt == 1;

    die_at(o, "read");
    put_all('S', "0 0", true);
    if (o->kill[0] && tasks[0].attempt == 1)
        kill_dqd(o->kill);
    leave_behind(o->fork, false);
    leave_behind(o->setsid, true);
    write_noise(o->out);
    live(o->ms);
    die_at(o, "work");
    put_all('E', "0", true);
    if (write(REPLY, text, half ? (size_t)len / 2 : (size_t)len) < 0)
        _exit(98);
    die_at(o, "half");
    die_at(o, "after");
}

static void stay(const struct orders *all)
{
    char *line = NULL;
    size_t cap = 0;

    rest_ms(all->boot);
    if (write(REPLY, "{\"ready\":true}\n", 15) != 15)
        return;
    task_count = 1;
    while (getline(&line, &cap, stdin) > 0) {
        struct orders o = {0};
        char *body = strstr(line, "\"body\":\"@");

        tasks[0] = (struct ref){member(line, "\"id\":"), member(line, "\"attempt\":"),
                                member(line, "\"token\":"), false, false};
        body = body ? strtok(body + 9, " \"\n}") : NULL;
        for (char *word = body; word; word = strtok(NULL, " \"\n}"))
            take_word(&o, word);
        do_task(&o);
    }
    free(line);
}

int main(int argc, char **argv)
{
    struct orders o = {0};
    char text[64];
    uint64_t len = 0, hash = 0;

    if (argc < 2 || (file = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)) < 0)
        return 99;
    for (int i = 2; i < argc; i++)
        take_word(&o, argv[i]);
    if (o.stay) {
        stay(&o);
        return 0;
    }
    if (o.batch) {
        read_batch();
    } else {
        tasks[task_count++] = (struct ref){variable("DQ_ID"), variable("DQ_ATTEMPT"),
                                           variable("DQ_TOKEN"), false, false};
        hash = read_body(&o, &len);
    }
    if (o.ignore)
        signal(SIGTERM, SIG_IGN);
    snprintf(text, sizeof text, "%" PRIu64 " %016" PRIx64, len, hash);
    put_all('S', text, true);
    if (o.kill[0])
        kill_dqd(o.kill);
    leave_behind(o.fork, false);
    leave_behind(o.setsid, true);
    write_noise(o.out);
    live(o.ms);
    if (o.until[0])
        await(o.until);
    if (o.poison[0])
        meet_poison(&o);
    if (o.fail >= (long)tasks[0].attempt && o.exit == 0)
        o.exit = 1;
    snprintf(text, sizeof text, "%ld", o.exit);
    put_all('E', text, true);
    if (o.done)
        say_verdicts(o.done);
    return (int)o.exit;
}
