/*
 * cases.c - reads the files that cases.h describes and hands their cases to cmocka.
 */
#include "cases.h"

#include "base/mem.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct case_list {
    struct test_case *items;
    size_t count;
};

static void (*checker)(const struct test_case *);

static void run_one(void **state)
{
    checker(*state);
}

static void add_expanded(struct buf *b, const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned value, times;
        char c;
        int used = 0;
        if (line[i] == '<' && isxdigit((unsigned char)line[i + 1]) &&
            sscanf(line + i, "<%2x>%n", &value, &used) == 1 && used == 4) {
            buf_chr(b, (char)value);
            i += 3;
        } else if (sscanf(line + i, "<%c*%u>%n", &c, &times, &used) == 2 && used > 0) {
            while (times-- > 0)
                buf_chr(b, c);
            i += (size_t)used - 1;
        } else {
            buf_chr(b, line[i]);
        }
    }
}

static struct case_list read_cases(FILE *f)
{
    struct case_list list = {NULL, 0};
    struct test_case *now = NULL;
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    while ((len = getline(&line, &size, f)) > 0) {
        if (line[len - 1] == '\n')
            line[--len] = '\0';
        if (strncmp(line, "#: ", 3) == 0) {
            list.items = mem_resize(list.items, list.count + 1, sizeof *list.items);
            now = &list.items[list.count++];
            *now = (struct test_case){.name = mem_strdup(line + 3)};
        } else if (now && strncmp(line, "=> ", 3) == 0) {
            now->expected = mem_resize(now->expected, now->count + 1, sizeof *now->expected);
            struct buf text = BUF_INIT;
            add_expanded(&text, line + 3, (size_t)len - 3);
            now->expected[now->count++] = buf_take(&text);
        } else if (now && now->count == 0) {
            add_expanded(&now->input, line, (size_t)len);
            buf_chr(&now->input, '\n');
        }
    }
    free(line);
    return list;
}

static void free_cases(struct case_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct test_case *c = &list->items[i];
        for (size_t k = 0; k < c->count; k++)
            free(c->expected[k]);
        free(c->expected);
        free(c->name);
        buf_done(&c->input);
    }
    free(list->items);
}

void cases_check_message(const char *message, const char *file, const char *expected)
{
    char *want = mem_printf("%s:%s", file, expected);
    size_t len = strlen(want);
    if (len > 3 && strcmp(want + len - 3, "...") == 0 && strncmp(message, want, len - 3) == 0)
        message = want;
    assert_string_equal(message, want);
    free(want);
}

int cases_run(const char *file, void (*check)(const struct test_case *),
              const struct CMUnitTest *fixed, size_t fixed_count)
{
    const char *top = getenv("DQ_TOP");
    char *path = mem_printf("%s/test/data/%s", top ? top : ".", file);
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        free(path);
        return 1;
    }
    struct case_list list = read_cases(f);
    fclose(f);
    struct CMUnitTest *tests = mem_zero(fixed_count + list.count, sizeof *tests);
    memcpy(tests, fixed, fixed_count * sizeof *tests);
    for (size_t i = 0; i < list.count; i++)
        tests[fixed_count + i] = (struct CMUnitTest){
            .name = list.items[i].name, .test_func = run_one, .initial_state = &list.items[i]};
    checker = check;
    int failed = _cmocka_run_group_tests(file, tests, fixed_count + list.count, NULL, NULL);
    free(tests);
    free_cases(&list);
    free(path);
    return failed;
}
