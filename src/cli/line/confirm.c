/*
 * confirm.c - see confirm.h.
 */
#include "cli/line/confirm.h"

#include "base/interrupt.h"
#include "base/text.h"
#include "cli/show/cell.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* An interrupt is noticed within this time. */
#define KEY_WAIT_MS 100
#define TAG_COLUMNS 40 /* of a question */

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

char confirm_key(const char *prompt)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    struct termios before, raw;
    char keys[16]; /* a key may be several bytes */

    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return '\0';
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    interrupt_catch(); /* or it would leave the terminal like that */
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    fputs(prompt, stderr);
    while (!interrupt_asked() && poll(&in, 1, KEY_WAIT_MS) <= 0)
        ;
    const ssize_t n = interrupt_asked() ? 0 : read(STDIN_FILENO, keys, sizeof keys);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    return n > 0 ? keys[0] : '\0';
}

static bool ask(struct buf *question)
{
    buf_str(question, "? [y/N] ");
    char key = confirm_key(question->data);
    bool yes = key == 'y' || key == 'Y';

    fputs(yes ? "y\n" : "n\n", stderr);
    return yes;
}

static bool ask_name(struct buf *question, const char *name)
{
    char answer[300];

    buf_str(question, "? Type ");
    text_escape(question, name, strlen(name), 0);
    buf_str(question, " to confirm: ");
    fputs(question->data, stderr);
    if (!fgets(answer, sizeof answer, stdin))
        return false;
    answer[strcspn(answer, "\r\n")] = '\0';
    return strcmp(answer, name) == 0;
}

bool confirm_tag(const struct cmd_context *c, const char *verb, const char *tag)
{
    BUF_LOCAL struct buf b = BUF_INIT;

    buf_printf(&b, "%s ", verb);
    text_escape(&b, tag, strlen(tag), TAG_COLUMNS);
    buf_str(&b, " on ");
    confirm_put_place(&b, c);
    return ask(&b);
}

int confirm_change(const struct cmd_context *c, const char *verb, uint64_t count, const char *tags,
                   struct err *err)
{
    const char *name = *c->conf->dq.name ? c->conf->dq.name : c->conf->mysql.database;
    BUF_LOCAL struct buf b = BUF_INIT;

    if (!isatty(STDIN_FILENO))
        return err_set(err, ERR_USAGE,
                       "%" PRIu64 " task%s; use -y to %s %s, or --dry-run to count them", count,
                       count == 1 ? " matches" : "s match", verb, count == 1 ? "it" : "them");
    buf_printf(&b, "%s ", verb);
    cell_put_count(&b, count);
    buf_printf(&b, " task%s (%s) on ", count == 1 ? "" : "s", tags);
    confirm_put_place(&b, c);
    bool agreed = count > CONFIRM_TYPED ? ask_name(&b, name) : ask(&b);
    return agreed ? 0 : err_set(err, ERR_NOT_FOUND, "nothing was changed");
}
