/*
 * handlers.c - any bytes as a handlers file give a table of handlers or an error message, and
 * nothing else.
 */
#include "conf/handlers.h"
#include "conf/handlers_load.h"

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
    int fd = memfd_create("handlers.yaml", MFD_CLOEXEC);
    if (fd < 0 || fchmod(fd, 0600) != 0 || write(fd, bytes, len) != (ssize_t)len)
        abort();
    char *path = mem_printf("/proc/self/fd/%d", fd);
    struct handlers *h = NULL;
    struct err err = {0};
    int rc = handlers_load(path, &h, &err);
    if ((rc == 0) != !!h ||
        (rc != 0 && (rc != ERR_CONFIG || strncmp(err.text, path, strlen(path)) != 0)))
        abort();
    if (h && handlers_match(h, "mail.welcome") >= (int)h->count)
        abort();
    handlers_free(h);
    free(path);
    close(fd);
    return 0;
}
