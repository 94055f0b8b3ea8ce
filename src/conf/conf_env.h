/*
 * conf_env.h - settings from the environment: DQ_SECTION_KEY in capitals, such as DQ_MYSQL_HOST.
 */
#ifndef DQ_CONF_CONF_ENV_H
#define DQ_CONF_CONF_ENV_H

#include "conf/conf_value.h"

/* Private to src/conf: reads the variables of this process. They override what was read before. A
 * variable of a section without such a key is an error. */
int conf_env_read(struct conf_reading *r);

/* Removes all of them from the environment, for programs that are to read a file alone. */
void conf_env_clear(void);

#endif
