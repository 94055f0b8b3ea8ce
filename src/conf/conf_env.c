/*
 * conf_env.c - settings that the environment overrides. Invariant: a variable that could be meant
 * as a setting is one, or an error.
 */
#include "conf/conf_env.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "DQ_"

/* Behind "DQ_SECTION_" of a variable, or NULL if no section has such variables. */
static const char *behind_section(const char *variable, const char **ret_section)
{
    for (size_t i = 0; conf_sections[i]; i++) {
        const char *p = variable + strlen(PREFIX), *s = conf_sections[i];
        while (*s && *p == toupper((unsigned char)*s))
            p++, s++;
        if (*s || *p != '_')
            continue;
        *ret_section = conf_sections[i];
        return p + 1;
    }
    return NULL;
}

/* The same text with other letters; a key has small ones only. */
static char *with_letters(const char *text, size_t len, int (*letter)(int c))
{
    char *copy = mem_dup(text, len);

    for (size_t i = 0; i < len; i++)
        copy[i] = (char)letter((unsigned char)copy[i]);
    return copy;
}

static int fail_unknown(struct conf_reading *r, const char *section, const char *key)
{
    const char *nearest = conf_nearest_key(section, key);

    if (strcmp(key, "password") == 0)
        return conf_value_fail(
            r, NULL,
            "a password is not taken from the environment; write it to a file, chmod 600 that, and name it: "
            "DQ_MYSQL_PASSWORD_FILE=PATH");
    if (!nearest)
        return conf_value_fail(r, NULL, "[%s] has no key \"%s\"; dq.ini(5) lists the keys", section,
                               key);
    MEM_LOCAL char *name =
                       with_letters(r->at.variable, strlen(r->at.variable) - strlen(key), toupper),
                   *end = with_letters(nearest, strlen(nearest), toupper);
    return conf_value_fail(r, NULL, "[%s] has no key \"%s\"; did you mean %s%s?", section, key,
                           name, end);
}

/* As inih does with what stands in a file. */
static char *trimmed(const char *text)
{
    size_t len;

    text += strspn(text, " \t");
    len = strlen(text);
    while (len > 0 && strchr(" \t\r", text[len - 1]))
        len--;
    return mem_dup(text, len);
}

static bool has_small(const char *text)
{
    while (*text && !islower((unsigned char)*text))
        text++;
    return *text;
}

static int take(struct conf_reading *r, const char *section, const char *key, const char *value)
{
    const struct conf_key *k = has_small(r->at.variable) ? NULL : conf_find_key(section, key);
    MEM_LOCAL char *text = trimmed(value);
    int rc = k ? conf_value_check(r, text, strlen(text)) : fail_unknown(r, section, key);

    if (rc == 0)
        rc = conf_value_set(r, k, text);
    if (rc == 0) {
        free(r->places[k - conf_keys].variable);
        r->places[k - conf_keys] = (struct conf_place){.variable = mem_strdup(r->at.variable)};
    }
    return rc;
}

int conf_env_read(struct conf_reading *r)
{
    int rc = 0;

    for (char **e = environ; rc == 0 && e && *e; e++) {
        const char *section, *key, *equals = strchr(*e, '=');
        if (strncmp(*e, PREFIX, strlen(PREFIX)) || !equals || !(key = behind_section(*e, &section)))
            continue;
        MEM_LOCAL char *name = with_letters(key, (size_t)(equals - key), tolower);
        r->at = (struct conf_place){.variable = mem_dup(*e, (size_t)(equals - *e))};
        rc = take(r, section, name, equals + 1);
        free(r->at.variable);
        r->at = (struct conf_place){0};
    }
    return rc;
}

void conf_env_clear(void)
{
    const char *section;

    for (char **e = environ; e && *e;) {
        MEM_LOCAL char *name = mem_dup(*e, strcspn(*e, "="));
        bool ours = !strncmp(name, PREFIX, strlen(PREFIX)) && behind_section(name, &section);
        if (!ours || unsetenv(name) != 0)
            e++;
    }
}
