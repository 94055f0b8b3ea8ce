/*
 * act.c - see act.h. Invariant: who it was comes from the kernel or from sudo, never from data or
 * from an environment that the person could have set.
 */
#include "cli/many/act.h"

#include "base/mem.h"
#include "base/text.h"
#include "cli/line/option.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define IDS_SHOWN 10
#define NAME_MAX_BYTES 64
#define HOST_MAX_BYTES 128

/* The account that logged in, which su and sudo do not change; -1: not known, as in a container. */
static uid_t login_uid(void)
{
    char text[24] = "";
    int fd = open("/proc/self/loginuid", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    return n > 0 ? (uid_t)strtoul(text, NULL, 10) : (uid_t)-1;
}

/* Whether this process is in a user namespace, in which anybody can be root and show any passwd(5).
 * *uid becomes the id that it has outside. */
static bool in_namespace(uid_t *uid)
{
    unsigned long inside, outside, count;
    bool found = false, all = false;
    FILE *map = fopen("/proc/self/uid_map", "re");

    while (map && !found && fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3) {
        found = *uid >= inside && *uid - inside < count;
        all = inside == 0 && outside == 0 && count == UINT32_MAX;
    }
    if (found)
        *uid = (uid_t)(outside + *uid - inside);
    if (map)
        fclose(map);
    return !all;
}

/* "alice@db1". Only root can have SUDO_USER from anything but sudo. */
static char *who(void)
{
    char host[HOST_MAX_BYTES + 1] = "", number[48];
    uid_t login = login_uid(), uid = login != (uid_t)-1 ? login : geteuid();
    bool inside = in_namespace(&uid);
    const char *sudo = login == (uid_t)-1 && uid == 0 && !inside ? getenv("SUDO_USER") : NULL;
    const struct passwd *pw = inside ? NULL : getpwuid(uid);

    gethostname(host, sizeof host - 1);
    snprintf(number, sizeof number, "uid %lu%s", (unsigned long)uid, inside ? " (userns)" : "");
    return mem_printf("%.*s@%s", NAME_MAX_BYTES,
                      sudo && *sudo ? sudo
                      : pw          ? pw->pw_name
                                    : number,
                      host);
}

/* What was given of bodies: those who may read dq_event need not have a right to them. */
static void put_digests(struct buf *b, const struct cmd_context *c)
{
    for (size_t i = 0; i < c->cmd->option_count; i++) {
        const struct cmd_option *o = &c->cmd->options[i];
        const char *text = o->type == CMD_BODY
                               ? *(const char *const *)((const char *)c->values + o->offset)
                               : NULL;
        char digest[EVENT_STORE_DIGEST_SIZE] = "not known";
        struct err none;

        if (!text)
            continue;
        (void)!event_store_digest(c->db, text, digest, &none);
        buf_printf(b, " --%s [%zu bytes, SHA-256 %s...]", o->name, strlen(text), digest);
    }
}

static void put_ids(struct buf *b, const uint64_t *ids, size_t count)
{
    for (size_t i = 0; i < count && i < IDS_SHOWN; i++)
        buf_printf(b, " %" PRIu64, ids[i]);
    if (count > IDS_SHOWN)
        buf_printf(b, " ... (%zu ids)", count);
}

/* Cuts a text after `most` characters; bytes that are not UTF-8 count as one. */
static void cut(char *text, size_t most)
{
    char *p = text, *end = text + strlen(text);
    uint32_t c;

    for (size_t n = 0; p < end && n < most; n++) {
        size_t len = text_utf8_next(p, (size_t)(end - p), &c);
        p += len ? len : 1;
    }
    *p = '\0';
}

/* words: what was given, each behind a blank. */
static struct act make(const struct cmd_context *c, const struct buf *words, const char *tag)
{
    struct act a = {.actor = who()};

    if (words->len) {
        a.arguments = mem_strdup(words->data + 1);
        cut(a.arguments, EVENT_STORE_ARGUMENTS_MAX);
    }
    a.event = (struct event_act){
        .actor = a.actor, .verb = c->cmd->name, .arguments = a.arguments, .tag = tag};
    while (getrandom(a.event.token, sizeof a.event.token, 0) < 0 && errno == EINTR)
        ;
    return a;
}

struct act act_of(const struct cmd_context *c, const char *name, const char *tag)
{
    BUF_LOCAL struct buf b = BUF_INIT;

    if (name) {
        buf_chr(&b, ' ');
        text_shell_word(&b, name);
    }
    option_put_given(&b, c, false);
    put_digests(&b, c);
    return make(c, &b, tag);
}

struct act act_of_tasks(const struct cmd_context *c, const uint64_t *ids, size_t count,
                        const char *tag)
{
    BUF_LOCAL struct buf b = BUF_INIT;

    option_put_given(&b, c, false);
    put_digests(&b, c);
    put_ids(&b, ids, count);
    struct act a = make(c, &b, tag);
    a.event.task_id = count == 1 ? ids[0] : 0;
    return a;
}

int act_schedules(const struct cmd_context *c, const char *name, const char *tag,
                  struct schedule_change *changes, size_t count, const char *all_of,
                  size_t *ret_bad, struct err *err)
{
    LOCAL_BY(act_done) struct act act = act_of(c, name, tag);
    int tries = 0, rc;

    do {
        for (size_t i = 0; i < count; i++)
            changes[i].existed = false;
        rc = schedule_store_change(c->db, changes, count, all_of, &act.event, ret_bad, err);
    } while (cmd_again(rc, &tries));
    return rc;
}

void act_done(struct act *a)
{
    free(a->actor);
    free(a->arguments);
}
