/*
 * Files of root that are for a group, as README and the Debian packages install dq.ini and the
 * password. Only root can be several accounts.
 */
#include "conf/conf_file.h"

#include "base/mem.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char *dir; /* of this process's files */

static char *write_file(const char *name, const char *text, mode_t mode)
{
    char *path = mem_printf("%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path;
}

static int read_the_secret(const char *path, struct err *err)
{
    char *secret = NULL;
    int rc = conf_file_read_secret(path, &secret, err);

    if (rc == 0 && strcmp(secret, "hunter2") != 0)
        rc = ERR_DATA;
    free(secret);
    return rc;
}

static int open_settings(const char *path, struct err *err)
{
    return conf_file_open(path, "settings", err);
}

/* Calls it as www-data with that group besides its own; the error has these words (NULL: there is
 * none). */
static void as_www_data(int (*call)(const char *, struct err *), const char *path, gid_t group,
                        const char *words)
{
    const struct passwd *www = getpwnam("www-data");
    struct err err = {0};
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (!www || setgroups(group ? 1 : 0, &group) || setgid(www->pw_gid) || setuid(www->pw_uid))
            _exit(2);
        int rc = call(path, &err);
        bool fine = words ? rc == ERR_CONFIG && strstr(err.text, words) : rc >= 0;
        if (!fine)
            print_error("\"%s\"\n", err.text);
        _exit(!fine);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static gid_t a_group(void)
{
    const struct group *group = getgrnam("daemon");

    assert_non_null(group);
    return group->gr_gid;
}

/* The set-up of README, with daemon in place of dq: it serves root, dq and www-data. */
static void test_a_secret_of_root_may_be_for_a_group(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    gid_t gid = a_group();
    char *path = write_file("secret", "hunter2\n", 0640), *secret = NULL;
    struct err err;
    assert_int_equal(chown(path, 0, gid), 0);
    assert_int_equal(conf_file_read_secret(path, &secret, &err), 0);
    conf_file_wipe_secret(secret);
    as_www_data(read_the_secret, path, gid, NULL);
    as_www_data(read_the_secret, path, 0,
                "only the group daemon may read the password file; add the account www-data to "
                "it: usermod -aG daemon www-data");
    assert_int_equal(chmod(path, 0644), 0); /* in no group that may, but among the others */
    as_www_data(read_the_secret, path, 0,
                "others can read or change the password file (mode 0644)");
    assert_int_equal(chmod(path, 0660), 0);
    as_www_data(read_the_secret, path, gid,
                "others can read or change the password file (mode 0660)");
    assert_int_equal(chmod(path, 0600), 0);
    as_www_data(read_the_secret, path, gid,
                "the account www-data may not read the password file (owner root, group "
                "daemon, mode 0600)");
    assert_int_equal(chown(path, getpwnam("www-data")->pw_uid, gid), 0);
    assert_int_equal(chmod(path, 0640), 0);
    as_www_data(read_the_secret, path, gid,
                "others can read or change the password file (mode 0640)");
    unlink(path);
    free(path);
}

static void test_settings_of_root_may_be_for_a_group(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    gid_t gid = a_group();
    char *path = write_file("settings", "[dqd]\n", 0640);
    assert_int_equal(chown(path, 0, gid), 0);
    as_www_data(open_settings, path, gid, NULL);
    as_www_data(open_settings, path, 0,
                "only the group daemon may read the settings; add the account www-data to it: "
                "usermod -aG daemon www-data");
    unlink(path);
    free(path);
}

/* Otherwise each reload of a file that is refused would take a descriptor. */
static void test_a_file_that_is_refused_is_closed(void **state)
{
    (void)state;
    char *path = write_file("settings", "[dqd]\n", 0666);
    struct err err;
    int next = dup(STDERR_FILENO);

    close(next);
    assert_int_equal(open_settings(path, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "(mode 0666)"));
    assert_int_equal(dup(STDERR_FILENO), next);
    close(next);
    unlink(path);
    free(path);
}

static int make_directory(void **state)
{
    (void)state;
    dir = mem_strdup("/tmp/dq-conf-file-XXXXXX");
    return mkdtemp(dir) && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    int rc = rmdir(dir);
    free(dir);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_secret_of_root_may_be_for_a_group),
        cmocka_unit_test(test_settings_of_root_may_be_for_a_group),
        cmocka_unit_test(test_a_file_that_is_refused_is_closed),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
