/*
 * zone_names.c - see zone_names.h.
 */
#include "base/zone_names.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static FILE *open_database(void)
{
    MEM_LOCAL char *path = mem_printf("%s/tzdata.zi", zone_database());
    return fopen(path, "re");
}

const char *zone_names_version(void)
{
    static char version[16];
    FILE *f = open_database();

    if (!f || fscanf(f, "# version %15[0-9a-z.-]", version) != 1)
        *version = '\0';
    if (f)
        fclose(f);
    return version;
}

/* The part of "Europe/Berlin" that people know. */
static const char *place(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* The name on a line: "Z Europe/Berlin 0:53:28 ..." begins a zone, "L Europe/Berlin Europe/Oslo"
 * names another one. */
static bool read_name(const char *line, char name[128])
{
    return sscanf(line, "Z %127s", name) == 1 || sscanf(line, "L %*s %127s", name) == 1;
}

/* Appends the zone that a person most likely meant by `name`: "Berlin" is Europe/Berlin. False:
 * there is none. */
static bool nearest_zone(struct buf *b, const char *name)
{
    FILE *f = open_database();
    MEM_LOCAL char *line = NULL;
    char word[128], **names = NULL;
    const char *found = NULL;
    size_t size = 0, count = 0, cap = 0;

    while (f && getline(&line, &size, f) > 0)
        if (read_name(line, word)) {
            MEM_ROOM(names, count, cap);
            names[count++] = mem_strdup(word);
            if (!strcasecmp(place(word), place(name)))
                found = names[count - 1];
        }
    if (!found)
        found = text_nearest(name, (const char *const *)names, count);
    if (found)
        buf_str(b, found);
    while (count)
        free(names[--count]);
    free(names);
    if (f)
        fclose(f);
    return found;
}

int zone_names_load(const char *name, struct zone **ret, struct err *err)
{
    BUF_LOCAL struct buf nearest = BUF_INIT;

    *ret = NULL;
    if (!strcmp(name, "UTC"))
        return 0;
    if (!strcmp(name, "localtime"))
        return err_set(
            err, ERR_DATA,
            "zone \"localtime\": differs between hosts; name the zone, such as Europe/Berlin");
    *ret = zone_new(name, strlen(name));
    if (*ret)
        return 0;
    bool found = nearest_zone(&nearest, name);
    return err_set(err, ERR_DATA, "zone \"%.64s\": unknown to %s%s%s%s", name, zone_database(),
                   found ? " (did you mean " : "", found ? nearest.data : "", found ? "?)" : "");
}
