/*
 * conf.c - any bytes as dq.ini give a configuration or an error message, and nothing else.
 */
#include "conf/conf.h"
#include "conf/conf_load.h"

#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    int fd = memfd_create("dq.ini", MFD_CLOEXEC);
    if (fd < 0 || fchmod(fd, 0600) != 0 || write(fd, bytes, len) != (ssize_t)len)
        abort();
    char *path = mem_printf("/proc/self/fd/%d", fd);
    struct conf *c = NULL;
    struct err err = {0};
    int rc = conf_load(path, &c, &err);
    if ((rc == 0) != !!c ||
        (rc != 0 && (rc != ERR_CONFIG || strncmp(err.text, path, strlen(path)) != 0)))
        abort();
    conf_free(c);
    free(path);
    close(fd);
    return 0;
}
