/* Files that are replaced as a whole. */
#include "base/replace.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/dq-replace.XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static void make(const char *name, time_t age_s)
{
    const struct timespec now_and_then[] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = time(NULL) - age_s}};
    FILE *f = fopen(name, "w");

    assert_non_null(f);
    fclose(f);
    assert_int_equal(utimensat(AT_FDCWD, name, now_and_then, 0), 0);
}

static void check_text(const char *name, const char *expected)
{
    char text[32] = "";
    FILE *f = fopen(name, "r");

    assert_non_null(f);
    (void)!fgets(text, sizeof text, f);
    fclose(f);
    assert_string_equal(text, expected);
}

static void the_text_is_replaced_and_nothing_else_is_left(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(replace_file("f", "one", 3, true, &err), 0);
    assert_int_equal(replace_file("f", "two", 3, true, &err), 0);
    check_text("f", "two");
    assert_int_equal(unlink("f"), 0); /* and leave() finds the directory empty */
}

static void what_crashes_have_left_is_deleted(void **state)
{
    static const char *const kept[] = {"f.1.new", "f.new", "f.x.new", "f.1.newer", "g.1.new"};
    struct err err;
    (void)state;
    make("f.1.new", 5); /* another process may be writing it */
    for (size_t i = 1; i < sizeof kept / sizeof kept[0]; i++)
        make(kept[i], 3600);
    make("f.4711.new", 3600);
    assert_int_equal(mkdir("f.2.new", 0700), 0);
    assert_int_equal(replace_file("f", "one", 3, true, &err), 0);
    assert_int_not_equal(access("f.4711.new", F_OK), 0);
    make("f.4711.new", 3600);
    char *absolute = NULL;
    assert_true(asprintf(&absolute, "%s/f", dir) > 0);
    assert_int_equal(replace_file(absolute, "two", 3, true, &err), 0);
    free(absolute);
    assert_int_not_equal(access("f.4711.new", F_OK), 0);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        assert_int_equal(unlink(kept[i]), 0);
    assert_int_equal(rmdir("f.2.new"), 0);
    assert_int_equal(unlink("f"), 0);
}

static void a_failure_keeps_the_old_file(void **state)
{
    struct err err = {0};
    (void)state;
    assert_int_equal(mkdir("f", 0700), 0);
    assert_int_equal(replace_file("f", "one", 3, true, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "cannot write f: "));
    assert_int_equal(rmdir("f"), 0);
    assert_int_equal(replace_file("no/f", "one", 3, true, &err), ERR_SYSTEM);
}

static struct stat look_at(const char *name)
{
    struct stat st;

    assert_int_equal(lstat(name, &st), 0);
    return st;
}

static void write_to(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void mode_and_owner_are_kept(void **state)
{
    const uid_t owner = geteuid() ? geteuid() : 65534;
    struct err err;
    (void)state;
    make("f", 0);
    assert_int_equal(chown("f", owner, (gid_t)-1), 0);
    assert_int_equal(chmod("f", 0640), 0);
    const ino_t before = look_at("f").st_ino;
    assert_int_equal(replace_file("f", "one", 3, true, &err), 0);
    check_text("f", "one");
    const struct stat after = look_at("f");
    assert_int_not_equal(after.st_ino, before);
    assert_int_equal(after.st_uid, owner);
    assert_int_equal(after.st_mode & 07777, 0640);
    assert_int_equal(unlink("f"), 0);
}

static void a_link_stays_and_its_file_is_replaced(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    make("d/f", 0);
    make("d/f.4711.new", 3600);
    const ino_t before = look_at("d/f").st_ino;
    assert_int_equal(symlink("d/f", "l"), 0);
    assert_int_equal(replace_file("l", "one", 3, true, &err), 0);
    assert_true(S_ISLNK(look_at("l").st_mode));
    assert_int_not_equal(look_at("d/f").st_ino, before);
    check_text("d/f", "one");
    assert_int_equal(unlink("d/f"), 0);
    assert_int_equal(replace_file("l", "two", 3, true, &err), 0); /* a link to nothing */
    assert_true(S_ISLNK(look_at("l").st_mode));
    check_text("d/f", "two");
    assert_int_equal(unlink("l"), 0);
    assert_int_equal(unlink("d/f"), 0);
    assert_int_equal(rmdir("d"), 0);
}

static void all_names_of_a_file_show_the_new_text(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(replace_file("f", "one", 3, true, &err), 0);
    assert_int_equal(link("f", "g"), 0);
    assert_int_equal(replace_file("f", "2", 1, true, &err), 0);
    check_text("f", "2");
    check_text("g", "2");
    assert_int_equal(unlink("f"), 0);
    assert_int_equal(unlink("g"), 0);
}

static void what_is_no_file_is_written_into(void **state)
{
    static char page[200000], back[sizeof page];
    struct err err;
    int fds[2], pid, status;
    (void)state;
    assert_int_equal(mkfifo("f", 0600), 0);
    assert_int_equal(replace_file("f", "one", 3, false, &err), ERR_SYSTEM); /* nobody reads */
    int reader = open("f", O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(replace_file("f", "one", 3, false, &err), 0);
    assert_int_equal(read(reader, back, sizeof back), 3);
    /* more than it holds, for a reader that takes it later, and for one that does not */
    assert_int_equal(replace_file("f", page, sizeof page, false, &err), ERR_SYSTEM);
    while (read(reader, back, sizeof back) > 0)
        ;
    close(reader);
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        reader = open("f", O_RDONLY);
        for (ssize_t n; (n = read(reader, back, sizeof back)) > 0;)
            if (write(fds[1], back, (size_t)n) != n)
                _exit(1);
        _exit(0);
    }
    close(fds[1]);
    memset(page, 'x', sizeof page);
    FILE *copy = fdopen(fds[0], "r");
    assert_non_null(copy);
    int writer = fork();
    if (writer == 0)
        _exit(replace_file("f", page, sizeof page, true, &err) != 0);
    assert_int_equal(fread(back, 1, sizeof back, copy), sizeof back);
    assert_memory_equal(back, page, sizeof page);
    fclose(copy);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
    assert_true(S_ISFIFO(look_at("f").st_mode));
    assert_int_equal(unlink("f"), 0);
    if (mknod("null", S_IFCHR | 0600, makedev(1, 3)) == 0) { /* root, outside of most containers */
        (void)!replace_file("null", "one", 3, true, &err);   /* /tmp may be mounted nodev */
        assert_true(S_ISCHR(look_at("null").st_mode));
        assert_int_equal(unlink("null"), 0);
    }
}

/* { echo a; dq stats --html /dev/stdout; echo b; } >f */
static void what_the_shell_has_opened_is_continued(void **state)
{
    struct err err;
    (void)state;
    int fd = open("f", O_WRONLY | O_CREAT, 0600), given = dup2(fd, 9);
    assert_int_equal(given, 9);
    write_to(given, "a");
    assert_int_equal(replace_file("/dev/fd/9", "one", 3, true, &err), 0);
    write_to(given, "b");
    close(given);
    close(fd);
    check_text("f", "aoneb");
    assert_int_equal(unlink("f"), 0);
}

/* As an account that owns neither the directory nor, the second time, the file. */
static void a_file_that_cannot_be_replaced_is_written_into(void **state)
{
    struct err err;
    int status, pid;
    (void)state;
    assert_int_equal(mkdir("d", 0755), 0);
    make("d/f", 0);
    make("d/g", 0);
    assert_int_equal(chmod("d/g", 0644), 0);
    if (geteuid() == 0)
        assert_int_equal(chown("d/f", 65534, (gid_t)-1) + chmod(dir, 0755), 0);
    else
        assert_int_equal(chmod("d/g", 0444) + chmod("d", 0555), 0);
    const ino_t before = look_at("d/f").st_ino;
    pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        if (replace_file("d/f", "one", 3, true, &err) != 0)
            _exit(3);
        if (replace_file("d/g", "one", 3, true, &err) != ERR_SYSTEM)
            _exit(4);
        _exit(replace_file("d/h", "one", 3, true, &err) == ERR_SYSTEM ? 0 : 5);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(chmod("d", 0755), 0);
    check_text("d/f", "one");
    check_text("d/g", "");
    assert_int_equal(look_at("d/f").st_ino, before);
    assert_int_equal(unlink("d/f"), 0);
    assert_int_equal(unlink("d/g"), 0);
    assert_int_equal(rmdir("d"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_replaced_and_nothing_else_is_left),
        cmocka_unit_test(what_crashes_have_left_is_deleted),
        cmocka_unit_test(a_failure_keeps_the_old_file),
        cmocka_unit_test(mode_and_owner_are_kept),
        cmocka_unit_test(a_link_stays_and_its_file_is_replaced),
        cmocka_unit_test(all_names_of_a_file_show_the_new_text),
        cmocka_unit_test(what_is_no_file_is_written_into),
        cmocka_unit_test(what_the_shell_has_opened_is_continued),
        cmocka_unit_test(a_file_that_cannot_be_replaced_is_written_into),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
