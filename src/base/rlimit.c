/*
 * rlimit.c - see rlimit.h.
 */
#include "base/rlimit.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

/* clang-format off */
static const struct {
    int resource;
    bool raised; /* dqd raises it as far as it goes */
    unsigned least, unit;
    const char *what, *unit_name, *how;
} needs[] = {
    /* our own frames take 60 KiB; libraries that look up hosts and accounts are others' work */
    {RLIMIT_STACK, false, 256, 1024, "the stack is", " KiB", "ulimit -s, LimitSTACK"},
    /* the poller's, the runner's, and a few handlers' */
    {RLIMIT_NOFILE, false, 64, 1, "open files are", "", "ulimit -n, LimitNOFILE"},
    /* a body is passed in a file in memory, and if it does not fit there, the attempt has failed */
    {RLIMIT_FSIZE, true, 64, 1024, "the size of files is", " KiB", "ulimit -f, LimitFSIZE"},
};
/* clang-format on */

int rlimit_check(bool starts_handlers, struct err *err)
{
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < (starts_handlers ? sizeof needs / sizeof needs[0] : 1); i++) {
        struct rlimit given;

        getrlimit(needs[i].resource, &given);
        rlim_t most = (needs[i].raised ? given.rlim_max : given.rlim_cur) / needs[i].unit;
        if (most < needs[i].least)
            return err_set(err, ERR_SYSTEM, "%s limited to %ju%s; %u are needed (%s= of systemd)",
                           needs[i].what, (uintmax_t)most, needs[i].unit_name, needs[i].least,
                           needs[i].how);
    }
    return 0;
}
