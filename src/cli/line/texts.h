/*
 * texts.h - files of etc, which the build turns into strings.
 */
#ifndef DQ_CLI_LINE_TEXTS_H
#define DQ_CLI_LINE_TEXTS_H

/* Of etc/completion. */
extern const char texts_bash[], texts_zsh[], texts_fish[];
/* How a page of dq stats --html begins: etc/stats.html. */
extern const char texts_page[];

/* What etc/help says of a command, of "dq" and "dqd", and of "filters". */
struct texts_help {
    const char *name, *group; /* group: the heading in `dq help` */
    const char *summary;      /* one line, lower case, no full stop */
    const char *usage;        /* what follows the name; one line each way to call it */
    const char *details;      /* paragraphs; "": none */
    const char *examples; /* one command a line; "": those of the verb that it belongs to, if any */
    const char *const *options; /* name, text, name, text, NULL */
};
/* There must be one of that name. */
const struct texts_help *texts_help(const char *name);
/* What it says of an option; "": nothing. */
const char *texts_option(const char *command, const char *name);

#endif
