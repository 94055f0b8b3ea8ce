/*
 * answer.c - a batch handler that does nothing but answer: one verdict a line. With -l each verdict
 * is written by itself, else as a program's stdout usually is: in blocks.
 */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    char line[1 << 16];

    if (argc > 1 && strcmp(argv[1], "-l") == 0)
        setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        const char *id = strstr(line, "\"id\":");

        if (id)
            printf("{\"id\":%.*s,\"result\":\"done\"}\n", (int)strspn(id + 5, "0123456789"),
                   id + 5);
    }
    return 0;
}
