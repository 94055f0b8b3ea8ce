/*
 * conf_put.h - settings as text, for a program that starts another one with settings of its own.
 */
#ifndef DQ_CONF_CONF_PUT_H
#define DQ_CONF_CONF_PUT_H

#include "base/buf.h"
#include "conf/conf.h"

/* Appends a section with all its keys, in a form that conf_load reads back. Passwords are not part
 * of it: they are in files of their own, which it only names. */
void conf_put_section(struct buf *b, const struct conf *c, const char *section);

#endif
