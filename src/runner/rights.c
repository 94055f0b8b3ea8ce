/*
 * rights.c - drops all root privileges except CAP_KILL.
 *
 * Invariant: except between rights_raise and rights_lower, the process has no privilege in effect
 * that the account does not have.
 */
#include "runner/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILL_BIT (UINT32_C(1) << CAP_KILL)

static bool kept;

/* Sets both sets of capabilities: KILL_BIT or 0 each. */
static int set(uint32_t permitted, uint32_t effective)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct data[2] = {
        {.permitted = permitted, .effective = effective}};

    return (int)syscall(SYS_capset, &header, data);
}

int rights_become(const char *user, struct err *err)
{
    const struct passwd *pw = getpwnam(user);

    if (!pw)
        return err_set(err, ERR_CONFIG, "[dqd] user = %s: no such account", user);
    if (pw->pw_uid == 0)
        return 0;
    prctl(PR_SET_KEEPCAPS, 1);
    if (initgroups(user, pw->pw_gid) != 0 || setgid(pw->pw_gid) != 0 || setuid(pw->pw_uid) != 0)
        return err_set(err, ERR_SYSTEM, "cannot become %s: %s", user, strerror(errno));
    prctl(PR_SET_KEEPCAPS, 0);
    kept = set(KILL_BIT, 0) == 0;
    if (!kept && set(0, 0) != 0)
        return err_set(err, ERR_SYSTEM, "cannot drop root privileges: %s", strerror(errno));
    return 0;
}

void rights_raise(void)
{
    if (kept)
        (void)set(KILL_BIT, KILL_BIT);
}

void rights_lower(void)
{
    if (kept)
        (void)set(KILL_BIT, 0);
}
