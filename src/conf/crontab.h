/*
 * crontab.h - reads crontabs: those of users, and those of /etc/cron.d, whose lines name a user.
 *
 * Reads as Debian's cron does. A line gives one entry, or a refusal with its reason; nothing stops
 * the lines behind it.
 *
 *   struct crontab tab;
 *   crontab_read(text, len, true, &tab);
 *   for (size_t i = 0; i < tab.count; i++)
 *       printf("%u: %s%s%s\n", e->line, crontab_verdict_name(e->verdict), ..., e->note);
 *   crontab_done(&tab);
 */
#ifndef DQ_CONF_CRONTAB_H
#define DQ_CONF_CRONTAB_H

#include <stdbool.h>
#include <stddef.h>

enum crontab_verdict {
    CRONTAB_TAKEN,    /* a schedule does the same */
    CRONTAB_CHANGED,  /* a schedule does nearly the same: see the note */
    CRONTAB_HOST_OWN, /* the same, but it looks like one host's own business: see the note */
    CRONTAB_REFUSED,  /* the note has the reason; of the rest, only line is set */
};

/* One line that is not empty, a comment or a variable. Strings are NULL where nothing is said. */
struct crontab_entry {
    unsigned line; /* from 1 */
    enum crontab_verdict verdict;
    char *note;       /* what is changed, or why; may stand beside CRONTAB_TAKEN */
    char *name;       /* proposed for the schedule: "backup-db"; no two of a file are equal */
    char *expression; /* "30 2 * * *" or "@daily", for timetable_new */
    char *zone;       /* CRON_TZ; NULL: that of the host */
    char *user;       /* NULL: whose crontab it is */
    char *command;    /* for SHELL -c; each \% is a % */
    char *input;      /* its standard input, with a newline at the end; NULL: empty */
    char *shell;      /* SHELL; NULL: /bin/sh */
    char *mailto;     /* MAILTO; "": mail is not wanted; NULL: to the user */
    unsigned spread_minutes; /* RANDOM_DELAY */
    char **env;              /* other variables, "NAME=VALUE", up to NULL; never NULL itself */
};

struct crontab {
    struct crontab_entry *entries; /* in the order of the lines */
    size_t count, cap;
    unsigned ignored; /* the line because of which Debian's cron ignores the whole file; 0: none */
};

/* has_user: each line names a user before its command. */
void crontab_read(const char *text, size_t len, bool has_user, struct crontab *ret);
void crontab_done(struct crontab *tab);

/* "taken", "changed", "own", "refused" */
const char *crontab_verdict_name(enum crontab_verdict v);

#endif
