/*
 * notes.c - maps the memory of notes.
 */
#include "runner/notes.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define SIZE ((NOTES_MAX + NOTES_KEPT) * sizeof(pid_t))

volatile pid_t *notes_new(void)
{
    void *notes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return notes == MAP_FAILED ? NULL : notes;
}

void notes_free(volatile pid_t *notes)
{
    if (notes)
        munmap((void *)(uintptr_t)notes, SIZE);
}
