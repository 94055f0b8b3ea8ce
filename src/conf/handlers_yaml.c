/*
 * handlers_yaml.c - builds the tree of handlers_yaml.h from libyaml's events.
 *
 * Invariant: work and memory are bounded by the caller's size limit, DEPTH_MAX and ITEMS_MAX; the
 * first fault ends the reading, so hostile nesting costs nothing. Faults point at the place a
 * person has to change, which for what was never closed is its beginning.
 */
#include "conf/handlers_yaml.h"

#include "base/mem.h"
#include "base/text.h"

#include <sys/param.h>
#include <yaml.h>

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8
#define ITEMS_MAX 4096

struct reader {
    yaml_parser_t parser;
    const char *file;
    const char *text; /* for places that libyaml gives as an offset */
    size_t len;
    struct err *err;
};

__attribute__((format(printf, 4, 5))) static int fail(const struct reader *r, size_t line,
                                                      size_t column, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)err_vset(r->err, ERR_CONFIG, fmt, ap);
    va_end(ap);
    (void)err_prefix(r->err, "%s:%zu:%zu", r->file, line, column);
    return ERR_CONFIG;
}

/* The most frequent errors of libyaml, in words that help to correct the file. at_start: report the
 * place where the construct begins, not where libyaml noticed the error. */
static const struct advice {
    const char *problem, *context, *text;
    bool at_start;
} advices[] = {
    /* clang-format off */
    {"found unexpected end of stream", "while scanning a quoted scalar", "this quote is never closed", true},
    {"found unexpected document indicator", "while scanning a quoted scalar", "this quote is never closed", true},
    {"did not find expected alphabetic", "while scanning an alias", "a name or value that begins with * must be in quotes", true},
    {"did not find expected alphabetic", "while scanning an anchor", "a value that begins with & must be in quotes", true},
    {"could not find expected ':'", "", "a key without its \":\"; write KEY: VALUE", true},
    {"mapping values are not allowed", "",
     "unexpected \": \"; put a value that contains it in quotes, and indent keys of one mapping alike", false},
    {"found character that cannot start any token", "", "put a value that begins with this character in quotes", false},
    {"did not find expected key", "while parsing a block mapping",
     "this does not belong to the mapping above; check indentation and quotes", false},
    {"did not find expected '-' indicator", "", "this does not belong to the list above; check the indentation", false},
    {"did not find expected ',' or '}'", "", "a { is not closed; check for a missing comma or }", false},
    {"did not find expected ',' or ']'", "", "a [ is not closed; check for a missing comma or ]", false},
    {"found unknown escape character", "", "unknown \\ escape in double quotes; use single quotes or write \\\\", false},
    /* clang-format on */
};

/* Bytes that are not text: libyaml gives their offset only. */
static int fail_encoding(const struct reader *r)
{
    size_t line = 1, column = 1, stop = MIN(r->parser.problem_offset, r->len);
    for (size_t i = 0; i < stop; i++) {
        if (r->text[i] == '\n') {
            line++;
            column = 1;
        } else if (!text_continues(r->text[i])) {
            column++;
        }
    }
    return fail(r, line, column,
                "not valid UTF-8 text, or a control character; save the file as UTF-8");
}

/* Whether a tab stands at a place; libyaml itself says "cannot start any token". */
static bool is_tab(const struct reader *r, const yaml_mark_t *at)
{
    const char *p = r->text, *end = r->text + r->len;
    for (size_t line = 0; line < at->line && p; line++) {
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    size_t blanks = 0;
    while (p && p + blanks < end && (p[blanks] == ' ' || p[blanks] == '\t'))
        blanks++;
    return at->column < blanks && p[at->column] == '\t';
}

static int fail_syntax(const struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "out of memory",
               *context = p->context ? p->context : "";
    const yaml_mark_t *at = &p->problem_mark;
    if (p->error == YAML_READER_ERROR)
        return fail_encoding(r);
    if (is_tab(r, at))
        return fail(r, at->line + 1, at->column + 1, "a tab; indent with spaces");
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++) {
        const struct advice *a = &advices[i];
        if (!strstr(problem, a->problem) || strncmp(context, a->context, strlen(a->context)) != 0)
            continue;
        if (a->at_start)
            return fail(r, p->context_mark.line + 1, p->context_mark.column + 1, "%s", a->text);
        if (*context != '\0' && p->context_mark.line != at->line)
            return fail(r, at->line + 1, at->column + 1, "%s (begun on line %zu)", a->text,
                        p->context_mark.line + 1);
        return fail(r, at->line + 1, at->column + 1, "%s", a->text);
    }
    return fail(r, at->line + 1, at->column + 1, "YAML syntax: %s%s%s", problem,
                *context != '\0' ? " " : "", context);
}

static int next_event(struct reader *r, yaml_event_t *ret)
{
    return yaml_parser_parse(&r->parser, ret) ? 0 : fail_syntax(r);
}

static int skip_event(struct reader *r)
{
    yaml_event_t e;
    int rc = next_event(r, &e);
    if (rc == 0)
        yaml_event_delete(&e);
    return rc;
}

void handlers_yaml_done(struct handlers_node *node)
{
    size_t items = node->kind == HANDLERS_NODE_MAP ? 2 * node->count : node->count;
    for (size_t i = 0; i < items; i++)
        handlers_yaml_done(&node->items[i]);
    free(node->items);
    free(node->text);
    memset(node, 0, sizeof *node);
}

static int refuse_extras(const struct reader *r, const yaml_event_t *e)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    size_t line = e->start_mark.line + 1, column = e->start_mark.column + 1;
    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return fail(r, line, column,
                    "aliases (*%s) are not supported; write the value out, or put it in quotes",
                    (const char *)e->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        anchor = e->data.scalar.anchor;
        tag = e->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = e->data.sequence_start.anchor;
        tag = e->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = e->data.mapping_start.anchor;
        tag = e->data.mapping_start.tag;
        break;
    default:
        break;
    }
    if (anchor)
        return fail(r, line, column,
                    "anchors (&%s) are not supported; remove it, or put the value in quotes",
                    (const char *)anchor);
    if (tag)
        return fail(r, line, column,
                    "YAML tags (%s) are not supported; remove it, or put the value in quotes",
                    (const char *)tag);
    return 0;
}

static int read_scalar(const struct reader *r, const yaml_event_t *e, struct handlers_node *node)
{
    const char *value = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;
    if (memchr(value, '\0', len))
        return fail(r, node->line, node->column,
                    "the text contains a NUL character (\\0); remove it");
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->is_null = plain && (len == 0 || strcmp(value, "~") == 0 || strcmp(value, "null") == 0);
    node->text = mem_dup(value, len);
    return 0;
}

static int check_map_key(const struct reader *r, const struct handlers_node *map,
                         const struct handlers_node *key, bool plain)
{
    if (key->kind != HANDLERS_NODE_SCALAR)
        return fail(r, key->line, key->column, "a key must be plain text, not a list or mapping");
    if (plain && strcmp(key->text, "<<") == 0)
        return fail(r, key->line, key->column,
                    "merge keys (<<) are not supported; use the section defaults");
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->items[2 * i].text, key->text) == 0)
            return fail(r, key->line, key->column,
                        "\"%s\" appears twice, first on line %u; remove one of them", key->text,
                        map->items[2 * i].line);
    return 0;
}

static int read_node(struct reader *r, const yaml_event_t *e, unsigned depth,
                     struct handlers_node *node);

/* Reads one element of `parent` that begins with event e into a new slot behind the others. used:
 * slots so far. */
static int read_item(struct reader *r, const yaml_event_t *e, unsigned depth,
                     struct handlers_node *parent, size_t used)
{
    if ((used & (used - 1)) == 0) /* full: doubled */
        parent->items = mem_resize(parent->items, used == 0 ? 1 : 2 * used, sizeof *parent->items);
    struct handlers_node *node = &parent->items[used];
    memset(node, 0, sizeof *node);
    int rc = read_node(r, e, depth + 1, node);
    if (rc == 0 && parent->kind == HANDLERS_NODE_MAP && used % 2 == 0)
        rc = check_map_key(r, parent, node,
                           e->type == YAML_SCALAR_EVENT &&
                               e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE);
    if (rc != 0)
        handlers_yaml_done(node);
    return rc;
}

/* The elements of a list, or the keys and values of a mapping, up to its end event. */
static int read_items(struct reader *r, unsigned depth, struct handlers_node *node)
{
    size_t used = 0, per_entry = node->kind == HANDLERS_NODE_MAP ? 2 : 1;
    int rc;
    for (;;) {
        yaml_event_t e;
        rc = next_event(r, &e);
        if (rc != 0)
            break;
        bool end = e.type == YAML_SEQUENCE_END_EVENT || e.type == YAML_MAPPING_END_EVENT;
        if (!end && used == ITEMS_MAX * per_entry)
            rc = fail(r, e.start_mark.line + 1, e.start_mark.column + 1,
                      "more than %d entries; is that intended?", ITEMS_MAX);
        else if (!end)
            rc = read_item(r, &e, depth, node, used);
        yaml_event_delete(&e);
        if (end || rc != 0)
            break;
        used++;
        node->count = used / per_entry;
    }
    if (rc != 0 && used % per_entry != 0) /* a key without its value: not counted */
        handlers_yaml_done(&node->items[used - 1]);
    return rc;
}

static int read_node(struct reader *r, const yaml_event_t *e, unsigned depth,
                     struct handlers_node *node)
{
    node->line = (unsigned)e->start_mark.line + 1;
    node->column = (unsigned)e->start_mark.column + 1;
    if (depth > DEPTH_MAX)
        return fail(r, node->line, node->column,
                    "nested more than %d levels deep; this is not a handlers file", DEPTH_MAX);
    int rc = refuse_extras(r, e);
    if (rc != 0)
        return rc;
    if (e->type == YAML_SCALAR_EVENT) {
        node->kind = HANDLERS_NODE_SCALAR;
        return read_scalar(r, e, node);
    }
    node->kind = e->type == YAML_MAPPING_START_EVENT ? HANDLERS_NODE_MAP : HANDLERS_NODE_LIST;
    return read_items(r, depth, node);
}

/* stream start, then a document or none, then the end of the stream. */
static int read_stream(struct reader *r, struct handlers_node *root)
{
    int rc = skip_event(r);
    if (rc != 0)
        return rc;
    yaml_event_t e;
    rc = next_event(r, &e);
    if (rc != 0)
        return rc;
    bool empty = e.type == YAML_STREAM_END_EVENT;
    yaml_event_delete(&e);
    if (empty) {
        *root =
            (struct handlers_node){.line = 1, .column = 1, .is_null = true, .text = mem_strdup("")};
        return 0;
    }
    rc = next_event(r, &e);
    if (rc != 0)
        return rc;
    rc = read_node(r, &e, 1, root);
    yaml_event_delete(&e);
    if (rc == 0)
        rc = skip_event(r); /* the document's end */
    if (rc == 0 && (rc = next_event(r, &e)) == 0) {
        if (e.type != YAML_STREAM_END_EVENT)
            rc = fail(r, e.start_mark.line + 1, e.start_mark.column + 1,
                      "a second document begins here; put everything into the first");
        yaml_event_delete(&e);
    }
    return rc;
}

int handlers_yaml_parse(const char *file, const char *text, size_t len,
                        struct handlers_node *ret_root, struct err *err)
{
    /* libyaml counts a byte order mark as indentation */
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    struct reader r = {.file = file, .text = text, .len = len, .err = err};
    if (!yaml_parser_initialize(&r.parser))
        return err_set(err, ERR_FATAL, "%s: the YAML library is out of memory", file);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(len > 0 ? text : ""), len);
    struct handlers_node root = {0};
    int rc = read_stream(&r, &root);
    yaml_parser_delete(&r.parser);
    if (rc == 0)
        *ret_root = root;
    else
        handlers_yaml_done(&root);
    return rc;
}
