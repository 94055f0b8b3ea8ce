/*
 * bulk_line.c - see bulk_line.h.
 *
 * Invariant: a line is either a complete, checked task or an error that names what is wrong with
 * it.
 */
#include "cli/many/bulk_line.h"

#include "base/when_parse.h"
#include "cli/show/task_columns.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const bulk_line_format_names[] = {"ndjson", "tsv", "csv", NULL};

enum field {
    FIELD_TAG,
    FIELD_KEY,
    FIELD_BODY,
    FIELD_IN,
    FIELD_AT,
    FIELD_EXPECTED, /* as list prints it */
    FIELD_MAX_ATTEMPTS,
    FIELD_ATTEMPTED,
    FIELD_PRIORITY,
    FIELD_EXPIRES,
    FIELD_EXPIRES_AT,
    FIELD_DELAY, /* list prints it beside expected, and it is ignored there */
    FIELD_COUNT,
    FIELD_WHEN = FIELD_COUNT, /* TSV, CSV: an in or an at, by its look */
    FIELD_IGNORED
};

/* clang-format off */
static const struct json_member members[] = {
    [FIELD_TAG] = {"tag", JSON_TEXT, true},     [FIELD_KEY] = {"key", JSON_TEXT, false},
    [FIELD_BODY] = {"body", JSON_BYTES, false}, [FIELD_IN] = {"in", JSON_TEXT, false},
    [FIELD_AT] = {"at", JSON_TEXT, false},      [FIELD_EXPECTED] = {"expected", JSON_TEXT, false},
    [FIELD_MAX_ATTEMPTS] = {"max_attempts", JSON_INT, false},
    [FIELD_ATTEMPTED] = {"attempted", JSON_INT, false}, [FIELD_EXPIRES] = {"expires", JSON_TEXT, false},
    [FIELD_EXPIRES_AT] = {"expires_at", JSON_TEXT, false},
    [FIELD_PRIORITY] = {"priority", JSON_TEXT, false}, [FIELD_DELAY] = {"delay", JSON_ANY, false},
};
/* clang-format on */

static int field_find(const char *name, size_t len)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        if (strlen(members[i].name) == len && memcmp(members[i].name, name, len) == 0)
            return i;
    if (len == 4 && memcmp(name, "when", 4) == 0)
        return FIELD_WHEN;
    for (size_t i = 0; i < task_column_count; i++)
        if (strlen(task_columns[i].name) == len && memcmp(task_columns[i].name, name, len) == 0)
            return FIELD_IGNORED;
    return -1;
}

/* The other members that dq list prints are known, and ignored. */
static void set_members(struct bulk_line_parser *p)
{
    memcpy(p->members, members, sizeof members);
    p->member_count = FIELD_COUNT;
    for (size_t i = 0; i < task_column_count && p->member_count < BULK_LINE_COLUMNS_MAX; i++) {
        const char *name = task_columns[i].name;
        if (field_find(name, strlen(name)) == FIELD_IGNORED)
            p->members[p->member_count++] = (struct json_member){name, JSON_ANY, false};
    }
}

void bulk_line_init(struct bulk_line_parser *p, struct cmd_context *c, enum bulk_line_format format)
{
    static const int usual[] = {FIELD_TAG, FIELD_WHEN, FIELD_KEY, FIELD_BODY};
    *p = (struct bulk_line_parser){.c = c, .format = format, .column_count = 4};
    memcpy(p->columns, usual, sizeof usual);
    if (format == BULK_LINE_NDJSON)
        p->json = json_reader_new();
    set_members(p);
}

void bulk_line_done(struct bulk_line_parser *p)
{
    if (p->json)
        json_reader_free(p->json);
}

/* ---- from values to a task ---- */

int bulk_line_check_expiry(struct cmd_context *c, const struct task_new *t, struct err *err)
{
    int64_t due_at = t->expected_at, now_at = 0;
    int rc = 0;

    if (!t->expires_at || (due_at == TASK_TIME_NONE && !c->db && c->now_at == TASK_TIME_NONE))
        return 0;
    if (due_at == TASK_TIME_NONE && (rc = cmd_now(c, &now_at, err)) == 0)
        due_at = now_at + t->delay_ms;
    if (rc == 0 && t->expires_at <= due_at)
        rc = err_set(err, ERR_DATA, "it would expire before it is due");
    return rc;
}

static int read_instant(struct bulk_line_parser *p, const char *text, int64_t *ret, struct err *err)
{
    int64_t now_at = 0;
    int rc = 0;

    if (cmd_time_is_relative(text)) {
        if (!p->c->db && p->c->now_at == TASK_TIME_NONE)
            return err_set(
                err, ERR_DATA,
                "--sql asks no database what time it is: use \"in\", or \"at\" with a date");
        rc = cmd_now(p->c, &now_at, err);
    }
    return rc < 0 ? rc : when_parse_instant(text, now_at, ret, err);
}

static int set_expiry(struct bulk_line_parser *p, const struct json_value *v, struct task_new *ret,
                      struct err *err)
{
    const struct json_value *in = &v[FIELD_EXPIRES], *at = &v[FIELD_EXPIRES_AT];

    ret->expires_at = ret->expires_ms = 0;
    if (in->present && at->present)
        return err_set(err, ERR_DATA, "\"expires\" and \"expires_at\" cannot be combined");
    if (at->present)
        return read_instant(p, at->text, &ret->expires_at, err);
    int rc = in->present ? when_parse_duration(in->text, &ret->expires_ms, err) : 0;
    if (rc == 0 && in->present && !ret->expires_ms)
        rc = err_set(err, ERR_DATA, "\"expires\" must be longer than 0");
    return rc;
}

static int set_times(struct bulk_line_parser *p, const struct json_value *v, struct task_new *ret,
                     struct err *err)
{
    const struct json_value *in = &v[FIELD_IN],
                            *at = &v[v[FIELD_AT].present ? FIELD_AT : FIELD_EXPECTED];
    ret->expected_at = TASK_TIME_NONE;
    ret->delay_ms = 0;
    if (in->present + v[FIELD_AT].present + v[FIELD_EXPECTED].present > 1)
        return err_set(err, ERR_DATA, "\"in\", \"at\" and \"expected\" cannot be combined");
    if (in->present)
        return when_parse_duration(in->text, &ret->delay_ms, err);
    if (!at->present && v[FIELD_DELAY].present)
        return err_set(err, ERR_DATA, "\"delay\" is no time to start: use \"in\"");
    if (!at->present)
        return 0;
    return read_instant(p, at->text, &ret->expected_at, err);
}

static size_t arena_add(struct buf *arena, const char *text, size_t len)
{
    size_t offset = arena->len;
    buf_add(arena, text, len);
    buf_chr(arena, '\0');
    return offset;
}

static int set_item(struct bulk_line_parser *p, const struct json_value *v, struct buf *arena,
                    struct bulk_line *ret, struct err *err)
{
    const struct json_value *tag = &v[FIELD_TAG], *key = &v[FIELD_KEY], *body = &v[FIELD_BODY],
                            *max = &v[FIELD_MAX_ATTEMPTS], *attempted = &v[FIELD_ATTEMPTED],
                            *priority = &v[FIELD_PRIORITY];
    int level = priority->present ? task_level_parse(priority->text) : TASK_NORMAL;
    int rc = task_check_tag(tag->text, tag->len, err);
    if (rc == 0 && key->present)
        rc = task_check_key(key->text, key->len, err);
    for (int i = FIELD_MAX_ATTEMPTS; rc == 0 && i <= FIELD_ATTEMPTED; i++)
        if (v[i].present && (v[i].number < 1 || v[i].number > UINT32_MAX))
            rc = err_set(err, ERR_DATA, "\"%s\" %lld is out of range: 1 to %u", members[i].name,
                         (long long)v[i].number, UINT32_MAX);
    if (rc == 0 && level < 0)
        rc = err_set(err, ERR_DATA, "\"priority\" \"%.20s\" " TASK_LEVEL_RULE, priority->text);
    if (rc == 0)
        rc = set_times(p, v, &ret->task, err);
    if (rc == 0)
        rc = set_expiry(p, v, &ret->task, err);
    if (rc < 0)
        return rc;
    ret->task.level = (enum task_level)level;
    ret->task.max_attempts = max->present ? (uint32_t)max->number : 0;
    ret->task.attempt = attempted->present ? (uint32_t)attempted->number : 0;
    ret->timed = v[FIELD_IN].present || v[FIELD_AT].present || v[FIELD_EXPECTED].present;
    ret->task.body_size = body->present ? body->len : 0;
    ret->has_key = key->present;
    ret->tag = arena_add(arena, tag->text, tag->len);
    ret->key = key->present ? arena_add(arena, key->text, key->len) : 0;
    ret->body = arena_add(arena, body->present ? body->text : "", ret->task.body_size);
    return 0;
}

/* ---- fields: TSV and CSV ---- */

/* \t \n \r \\ \xHH, as cell_put_escaped writes them. */
static int unescape(struct buf *out, const char *p, size_t len, struct err *err)
{
    static const char hex[] = "0123456789abcdef", letters[] = "tnr\\";
    for (size_t i = 0; i < len; i++) {
        if (p[i] != '\\') {
            buf_chr(out, p[i]);
            continue;
        }
        char c = i + 1 < len ? p[++i] : '\0';
        const char *letter = c != '\0' ? strchr(letters, c) : NULL;
        if (letter) {
            buf_chr(out, "\t\n\r\\"[letter - letters]);
        } else if (c == 'x' && i + 2 < len && isxdigit((unsigned char)p[i + 1]) &&
                   isxdigit((unsigned char)p[i + 2])) {
            size_t high = (size_t)(strchr(hex, tolower((unsigned char)p[i + 1])) - hex);
            size_t low = (size_t)(strchr(hex, tolower((unsigned char)p[i + 2])) - hex);
            buf_chr(out, (char)(high << 4 | low));
            i += 2;
        } else {
            return err_set(err, ERR_DATA,
                           "a backslash must be followed by t, n, r, xHH or a backslash");
        }
    }
    buf_chr(out, '\0');
    return 0;
}

/* Of TSV: only names of columns; or some, tag among them, and an error for the others. */
static bool is_heading(const char *line, size_t len)
{
    const char *end = line + len;
    bool tag = false, other = false;

    for (const char *s = line; s <= end;) {
        const char *tab = memchr(s, '\t', (size_t)(end - s));
        int column = field_find(s, (size_t)((tab ? tab : end) - s));
        if (s == line && column < 0)
            return false;
        tag = tag || column == FIELD_TAG;
        other = other || column < 0;
        s = (tab ? tab : end) + 1;
    }
    return tag || !other;
}

/* The fields of a line: each with a NUL behind it. */
struct fields {
    struct buf text;
    size_t starts[BULK_LINE_COLUMNS_MAX + 1], count; /* starts[count] is the end */
};

static size_t length_of(const struct fields *f, size_t i)
{
    return f->starts[i + 1] - f->starts[i] - 1;
}

/* Of a heading; -1: it is no column. */
static int column_of(const struct fields *f, size_t i)
{
    return field_find(f->text.data + f->starts[i], length_of(f, i));
}

/* Whether one more field may follow. */
static int check_room(const struct bulk_line_parser *p, const struct fields *f, size_t most,
                      struct err *err)
{
    if (f->count < most)
        return 0;
    return err_set(err, ERR_DATA, "more than %zu fields; %s", most,
                   p->format == BULK_LINE_CSV ? "put a field that contains a comma between quotes"
                                              : "write a tab inside a field as backslash t");
}

static int split_tsv(const struct bulk_line_parser *p, const char *line, size_t len, size_t most,
                     struct fields *f, struct err *err)
{
    for (const char *s = line, *end = line + len; s <= end;) {
        const char *tab = memchr(s, '\t', (size_t)(end - s));
        if (check_room(p, f, most, err) < 0)
            return ERR_DATA;
        int rc = unescape(&f->text, s, (size_t)((tab ? tab : end) - s), err);
        if (rc < 0)
            return err_prefix(err, "field %zu", f->count + 1);
        f->starts[++f->count] = f->text.len;
        s = (tab ? tab : end) + 1;
    }
    return 0;
}

bool bulk_line_is_open(bool open, const char *line, size_t len)
{
    const char *end = line + len;

    while (line < end && (line = memchr(line, '"', (size_t)(end - line)))) {
        open = !open; /* a doubled quote does so twice */
        line++;
    }
    return open;
}

/* A field behind its opening quote; returns where it ends, behind the closing one. NULL: it does
 * not. */
static const char *take_quoted(const char *p, const char *end, struct buf *out)
{
    for (;;) {
        const char *quote = p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
        if (!quote)
            return NULL;
        buf_add(out, p, (size_t)(quote - p));
        p = quote + 1;
        if (p == end || *p != '"')
            return p;
        buf_chr(out, '"');
        p++;
    }
}

/* Appends the next field of a record, and a NUL. *at is where it begins, and then where the one
 * behind it does. 1: there is one behind it, 0: it was the last, ERR_DATA: RFC 4180 does not allow
 * it. */
static int csv_field(const char **at, const char *end, struct buf *out, struct err *err)
{
    const char *p = *at;

    if (p < end && *p == '"') {
        p = take_quoted(p + 1, end, out);
        if (!p)
            return err_set(err, ERR_DATA, "its quotes are not closed");
        if (p < end && *p != ',')
            return err_set(
                err, ERR_DATA,
                "there is text behind the closing quote; inside quotes, a quote is written twice");
    } else {
        const char *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
        const char *start = p;
        p = comma ? comma : end;
        if (start < p && memchr(start, '"', (size_t)(p - start)))
            return err_set(
                err, ERR_DATA,
                "it contains a quote; put the field between quotes, and write this one twice");
        buf_add(out, start, (size_t)(p - start));
    }
    buf_chr(out, '\0');
    if (p == end)
        return 0;
    *at = p + 1;
    return 1;
}

static int split_csv(const struct bulk_line_parser *p, const char *line, size_t len, size_t most,
                     struct fields *f, struct err *err)
{
    const char *end = line + len;
    int rc = 1;

    while (rc == 1) {
        if (check_room(p, f, most, err) < 0)
            return ERR_DATA;
        rc = csv_field(&line, end, &f->text, err);
        if (rc < 0)
            return err_prefix(err, "field %zu", f->count + 1);
        f->starts[++f->count] = f->text.len;
    }
    return rc;
}

/* At most `most` fields. */
static int split(const struct bulk_line_parser *p, const char *line, size_t len, size_t most,
                 struct fields *ret, struct err *err)
{
    return p->format == BULK_LINE_CSV ? split_csv(p, line, len, most, ret, err)
                                      : split_tsv(p, line, len, most, ret, err);
}

bool bulk_line_is_csv(const char *line, size_t len)
{
    const struct bulk_line_parser p = {.format = BULK_LINE_CSV};
    struct fields f = {.text = BUF_INIT};
    struct err none;
    bool known = split(&p, line, len, BULK_LINE_COLUMNS_MAX, &f, &none) == 0 && f.count > 1;
    bool tag = false;

    for (size_t i = 0; known && i < f.count; i++) {
        int column = column_of(&f, i);
        known = column >= 0;
        tag = tag || column == FIELD_TAG;
    }
    buf_done(&f.text);
    return known && tag;
}

static int take_columns(struct bulk_line_parser *p, const struct fields *f, struct err *err)
{
    bool seen[FIELD_IGNORED] = {false};

    for (size_t i = 0; i < f->count; i++) {
        const char *name = f->text.data + f->starts[i];
        int column = column_of(f, i);
        if (column < 0)
            return err_set(
                err, ERR_DATA,
                "heading: \"%.40s\" is not one of the fields of add --from, such as tag, at or body, or a column of dq list",
                name);
        if (column != FIELD_IGNORED && seen[column])
            return err_set(err, ERR_DATA, "heading: \"%s\" appears twice", name);
        if (column != FIELD_IGNORED)
            seen[column] = true;
        p->columns[i] = column;
    }
    p->column_count = f->count;
    if (seen[FIELD_TAG])
        return 1;
    return err_set(
        err, ERR_DATA, "heading: there is no column tag%s",
        p->format == BULK_LINE_TSV ? "; if it is a task, write the line \"tag\" before it" : "");
}

int bulk_line_heading(struct bulk_line_parser *p, const char *line, size_t len, struct err *err)
{
    struct fields f = {.text = BUF_INIT};

    if (p->format == BULK_LINE_NDJSON || (p->format == BULK_LINE_TSV && !is_heading(line, len)))
        return 0;
    int rc = split(p, line, len, BULK_LINE_COLUMNS_MAX, &f, err);
    if (rc == 0)
        rc = take_columns(p, &f, err);
    if (rc < 0 && p->format == BULK_LINE_CSV) {
        err_set(err, rc, "%s; CSV begins with a line that names its columns, such as tag,body,at",
                err->text);
    }
    buf_done(&f.text);
    return rc;
}

static bool looks_like_duration(const char *text)
{
    struct err none;
    return isdigit((unsigned char)text[0]) && !strpbrk(text, "-:") &&
           when_parse_check(text, false, &none) < 0;
}

static int set_number(struct json_value *v, int field, struct err *err)
{
    char *end;
    errno = 0;
    v->number = strtoll(v->text, &end, 10);
    if (*end != '\0' || errno == ERANGE)
        return err_set(err, ERR_DATA, "%s \"%s\" is not a number", members[field].name, v->text);
    return 0;
}

/* An empty field counts as absent, but for the body. */
static int set_values(const struct bulk_line_parser *p, const struct fields *f,
                      struct json_value *values, struct err *err)
{
    for (size_t i = 0; i < f->count; i++) {
        struct json_value v = {
            .present = true, .text = f->text.data + f->starts[i], .len = length_of(f, i)};
        int field = p->columns[i];
        if (field == FIELD_IGNORED)
            continue;
        if (field == FIELD_WHEN)
            field = looks_like_duration(v.text) ? FIELD_IN : FIELD_AT;
        if (field != FIELD_BODY && field != FIELD_TAG && v.len == 0)
            continue;
        if (field != FIELD_BODY && strlen(v.text) != v.len)
            return err_set(err, ERR_DATA, "%s: only a body may contain a NUL byte",
                           members[field].name);
        int rc = members[field].type == JSON_INT ? set_number(&v, field, err) : 0;
        if (rc < 0)
            return rc;
        values[field] = v;
    }
    return 0;
}

/* A line of CSV that was taken for TSV is one long tag. */
static void suggest_csv(const struct bulk_line_parser *p, const char *line, size_t len,
                        struct err *err)
{

    if (p->format != BULK_LINE_TSV || memchr(line, '\t', len) || !memchr(line, ',', len))
        return;
    err_set(err, err->code,
            "%s; for CSV, name the columns in the first line (tag,body,at), and give --format csv",
            err->text);
}

int bulk_line_parse(struct bulk_line_parser *p, const char *line, size_t len, struct buf *arena,
                    struct bulk_line *ret, struct err *err)
{
    struct json_value values[BULK_LINE_COLUMNS_MAX] = {0};
    if (p->format == BULK_LINE_NDJSON) {
        int rc = json_read_object(p->json, line, len, p->members, p->member_count, values, err);
        return rc < 0 ? rc : set_item(p, values, arena, ret, err);
    }
    struct fields f = {.text = BUF_INIT};
    int rc = split(p, line, len, p->column_count, &f, err);
    if (rc == 0 && p->format == BULK_LINE_CSV && f.count < p->column_count)
        rc = err_set(err, ERR_DATA, "only %zu of %zu fields", f.count, p->column_count);
    if (rc == 0)
        rc = set_values(p, &f, values, err);
    if (rc == 0)
        rc = set_item(p, values, arena, ret, err);
    if (rc < 0)
        suggest_csv(p, line, len, err);
    buf_done(&f.text);
    return rc;
}
