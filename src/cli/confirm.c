/*
 * confirm.c - see confirm.h.
 */
#include "cli/confirm.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void confirm_put_count(struct buf *b, uint64_t count)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, count);

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            buf_chr(b, ',');
        buf_chr(b, digits[i]);
    }
}

void confirm_put_place(struct buf *b, const struct cmd_context *c)
{
    const char *name = c->conf->dq.name, *host = db_host(c->db),
               *database = c->conf->mysql.database;

    if (*name) {
        text_escape(b, name, strlen(name), 0);
        buf_str(b, ", ");
    }
    text_escape(b, host, strlen(host), 0);
    buf_chr(b, '/');
    text_escape(b, database, strlen(database), 0);
}

/* A line from the terminal, without its end. */
static bool read_answer(char *answer, int size)
{
    if (!fgets(answer, size, stdin))
        return false;
    answer[strcspn(answer, "\r\n")] = '\0';
    return true;
}

int confirm_change(const struct cmd_context *c, const char *verb, uint64_t count, const char *tags,
                   struct err *err)
{
    const char *name = *c->conf->dq.name ? c->conf->dq.name : c->conf->mysql.database;
    struct buf b = BUF_INIT;
    char answer[300];
    bool typed = count > CONFIRM_TYPED, agreed;

    if (!isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE,
                       "%" PRIu64 " tasks match; use -y to %s them, or --dry-run to count them",
                       count, verb);
    buf_printf(&b, "%s ", verb);
    confirm_put_count(&b, count);
    buf_printf(&b, " tasks (%s) on ", tags);
    confirm_put_place(&b, c);
    if (typed) {
        buf_str(&b, "? Type ");
        text_escape(&b, name, strlen(name), 0);
        buf_str(&b, " to confirm: ");
    } else {
        buf_str(&b, "? [y/N] ");
    }
    fwrite(b.data, 1, b.len, stderr);
    buf_done(&b);
    agreed = read_answer(answer, sizeof answer) &&
             (typed ? strcmp(answer, name) == 0 : *answer == 'y' || *answer == 'Y');
    return agreed ? 0 : err_set(err, ERR_NOT_FOUND, "nothing was changed");
}
