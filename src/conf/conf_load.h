/*
 * conf_load.h - dq.ini and the environment, read by the table of settings.
 */
#ifndef DQ_CONF_CONF_LOAD_H
#define DQ_CONF_CONF_LOAD_H

#include "base/err.h"
#include "conf/conf.h"

/* Finds and reads the file; explicit_path may be NULL. Every key not given has its default.
 * *ret_conf is the caller's, to be freed with conf_free. Errors are ERR_CONFIG, "FILE:LINE: ..."
 * or "VARIABLE: ...", with the key and, for a misspelt one, the nearest name. */
int conf_load(const char *explicit_path, struct conf **ret_conf, struct err *err)
    __attribute__((warn_unused_result));

#endif
