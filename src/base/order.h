/*
 * order.h - comparisons for qsort and bsearch, of items that begin with what orders them. The key
 * of a bsearch is one of these alone: &name, &id.
 */
#ifndef DQ_BASE_ORDER_H
#define DQ_BASE_ORDER_H

int order_names(const void *a, const void *b); /* char *, as strcmp */
int order_ids(const void *a, const void *b);   /* uint64_t */
int order_times(const void *a, const void *b); /* int64_t */

#endif
