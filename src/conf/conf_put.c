/*
 * conf_put.c - see conf_put.h. Invariant: conf_load reads the same settings back.
 */
#include "conf/conf_put.h"

#include "base/log.h"
#include "base/when.h"

#include <string.h>

/* log_level is kept as the number that it means. */
static const char *choice_name(const struct conf_key *key, int value)
{
    for (int i = 0; key->choices[i]; i++)
        if ((strcmp(key->name, "log_level") == 0 ? log_level_parse(key->choices[i]) : i) == value)
            return key->choices[i];
    return key->default_text;
}

static void put_value(struct buf *b, const struct conf_key *key, const void *field)
{
    char text[WHEN_TEXT_SIZE];

    switch (key->type) {
    case CONF_STRING:
    case CONF_PATH:
        buf_str(b, *(char *const *)field);
        break;
    case CONF_INT:
        buf_printf(b, "%d", *(const int *)field);
        break;
    case CONF_DURATION:
        buf_str(b, when_format_duration(text, *(const int64_t *)field));
        break;
    case CONF_AGE:
        buf_str(b, *(const int64_t *)field ? when_format_duration(text, *(const int64_t *)field)
                                           : "never");
        break;
    case CONF_ENUM:
        buf_str(b, choice_name(key, *(const int *)field));
        break;
    }
}

void conf_put_section(struct buf *b, const struct conf *c, const char *section)
{
    buf_printf(b, "[%s]\n", section);
    for (size_t i = 0; i < conf_key_count; i++) {
        const struct conf_key *key = &conf_keys[i];
        if (strcmp(key->section, section))
            continue;
        buf_printf(b, "%s = ", key->name);
        put_value(b, key, (const char *)c + key->offset);
        buf_chr(b, '\n');
    }
}
