/* The unit tests as one program, for test/analyze/run: runs those that are named, each in a process
 * of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST(name) int test_##name(int argc, char **argv);
#include "units.h"
#undef TEST

#define TEST(name) {#name, test_##name},
static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} TESTS[] = {
#include "units.h"
};

static int run(char *name)
{
    int status = -1;

    fflush(stdout);
    for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++) {
        if (strcmp(name, TESTS[i].name))
            continue;
        pid_t pid = fork();
        if (!pid)
            exit(TESTS[i].run(1, (char *[]){name, NULL}));
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
            status = -1;
    }
    if (status)
        printf("%s: status %#x\n", name, (unsigned)status);
    return status;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++)
        failed |= run(argv[i]) != 0;
    return failed;
}
