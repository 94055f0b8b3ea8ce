/* Which tasks of a batch handler share a process. */
#include "base/company.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "table.h"

#define KINDS_MOST 8

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

static bool check_most(char **cell, const char *where)
{
    uint32_t most =
        company_most(number(cell[1]), number(cell[2]), number(cell[3]), !strcmp(cell[4], "own"));

    if (most != number(cell[5]))
        print_error("%s: got %u\n", where, most);
    return most == number(cell[5]);
}

static void company_shrinks_as_the_table_says(void **state)
{
    (void)state;
    assert_true(table_check("company.tbl", 6, check_most));
}

/* The kinds in the order in which they appear, and how many of each were taken. */
struct kinds {
    uint32_t most[KINDS_MOST], taken[KINDS_MOST], count, left;
};

static void take(struct company *c, struct kinds *k, uint32_t most)
{
    uint32_t i = 0;

    while (i < k->count && k->most[i] != most)
        i++;
    assert_true(i < KINDS_MOST);
    k->most[i] = most;
    k->count += i == k->count;
    if (company_take(c, most))
        k->taken[i]++;
    else
        k->left++;
}

static bool check_companies(char **cell, const char *where)
{
    struct company c = {.batch = number(cell[1]), .processes = number(cell[2])};
    struct kinds k = {.count = 0};
    char got[256] = "";
    size_t len = 0;

    for (char *word; (word = strsep(&cell[3], " "));)
        for (uint32_t n = number(strchr(word, '*') + 1); n; n--)
            take(&c, &k, number(word));
    for (uint32_t i = 0; i < k.count; i++)
        len += (size_t)snprintf(got + len, sizeof got - len, "%s%u:%u", i ? " " : "",
                                company_size(&c, k.most[i]), k.taken[i]);
    if (k.left)
        snprintf(got + len, sizeof got - len, " left:%u", k.left);
    if (strcmp(got, cell[4]) != 0)
        print_error("%s: %s: got %s\n", where, cell[0], got);
    return !strcmp(got, cell[4]);
}

static void tasks_share_processes_as_the_table_says(void **state)
{
    (void)state;
    assert_true(table_check("companies.tbl", 5, check_companies));
}

/* What company.c promises, for every batch and every ladder: doc/reliability has the formula. */
static void a_task_loses_no_more_attempts_to_others_than_the_logarithm(void **state)
{
    (void)state;
    for (uint32_t batch = 1; batch <= 5000; batch++) {
        uint32_t logarithm = 31 - (uint32_t)__builtin_clz(batch);

        for (uint32_t max = 2; max <= 20; max++) {
            uint32_t shared = 0;

            for (uint32_t attempts = 0; attempts < max; attempts++)
                shared += company_most(batch, attempts, max, false) > 1;
            assert_int_equal(shared, logarithm < max - 1 ? logarithm : max - 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(company_shrinks_as_the_table_says),
        cmocka_unit_test(tasks_share_processes_as_the_table_says),
        cmocka_unit_test(a_task_loses_no_more_attempts_to_others_than_the_logarithm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
