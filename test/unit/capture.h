/*
 * capture.h - a file in the place of stderr, for tests of what is logged. begin and end are the
 * fixtures of cmocka.
 */
#ifndef DQ_TEST_CAPTURE_H
#define DQ_TEST_CAPTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *capture;
static int capture_stderr; /* the real one */

static int capture_begin(void **state)
{
    (void)state;
    unsetenv("JOURNAL_STREAM");
    capture = tmpfile();
    capture_stderr = dup(STDERR_FILENO);
    return dup2(fileno(capture), STDERR_FILENO) < 0;
}

static int capture_end(void **state)
{
    (void)state;
    dup2(capture_stderr, STDERR_FILENO);
    close(capture_stderr);
    return fclose(capture);
}

static void capture_clear(void)
{
    rewind(capture);
    assert_int_equal(ftruncate(fileno(capture), 0), 0);
}

#endif
