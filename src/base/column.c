/*
 * column.c - see column.h.
 */
#include "base/column.h"

bool column_number(const struct column *c, const void *row, uint64_t *ret)
{
    const void *p = (const char *)row + c->offset;
    int number;

    switch (c->type) {
    case COLUMN_ID:
    case COLUMN_U64:
    case COLUMN_MS:
        *ret = *(const uint64_t *)p;
        return *ret != 0 || c->type != COLUMN_ID;
    case COLUMN_U32:
    case COLUMN_SOME:
        *ret = *(const uint32_t *)p;
        return *ret != 0 || c->type == COLUMN_U32;
    case COLUMN_SIZE:
        *ret = *(const size_t *)p;
        return *ret != SIZE_MAX;
    case COLUMN_BOOL:
        *ret = *(const bool *)p;
        return true;
    case COLUMN_INT:
    case COLUMN_EXIT:
    case COLUMN_SIGNAL:
    case COLUMN_STATUS:
        number = *(const int *)p;
        *ret = (uint64_t)number;
        return c->type == COLUMN_INT || number > 0 || (number == 0 && c->type != COLUMN_SIGNAL);
    default:
        return false;
    }
}

void column_set_number(const struct column *c, void *row, uint64_t number)
{
    void *p = (char *)row + c->offset;

    switch (c->type) {
    case COLUMN_ID:
    case COLUMN_U64:
    case COLUMN_MS:
        *(uint64_t *)p = number;
        break;
    case COLUMN_U32:
    case COLUMN_SOME:
        *(uint32_t *)p = (uint32_t)number;
        break;
    default:
        *(int *)p = (int)number;
        break;
    }
}
