/*
 * conf_ini.h - dq.ini. Private to src/conf.
 */
#ifndef DQ_CONF_CONF_INI_H
#define DQ_CONF_CONF_INI_H

#include "base/buf.h"
#include "conf/conf_value.h"

/* Reads the text of a file, and notes the line of each setting. 0 or a negative code. */
int conf_ini_read(struct conf_reading *r, const struct buf *text);

#endif
