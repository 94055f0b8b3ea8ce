/*
 * fleet.h - the dqds of all hosts and what they serve, as they have written it down in the
 * database. No verb reads a handlers file to speak about them.
 */
#ifndef DQ_CLI_JUDGE_FLEET_H
#define DQ_CLI_JUDGE_FLEET_H

#include "cli/line/cmd.h"
#include "store/ask/tag_store.h"
#include "store/ask/task_add.h"
#include "store/fleet/handler_store.h"
#include "store/fleet/limit_store.h"
#include "store/fleet/poller_store.h"

struct fleet_table; /* the handlers of a file */
struct fleet {
    struct poller_info *dqds; /* by host and pid; also dead ones */
    size_t count, alive;
    size_t between; /* of the live ones: a pass that has ended, and the next one is expected */
    size_t quiet;   /* of the live ones: dq quiet */
    size_t silent;  /* were resident, and neither end nor are heard */
    uint64_t slots, running; /* of the live ones; running: handlers */
    /* if none is alive: where and how long ago a resident one ended, later than any other was
     * heard; NULL: none did, or it is not known */
    char *ended;
    int64_t ended_ms;
    struct handler_rest *rests;
    size_t rest_count;
    struct limit_row *limits; /* those that say something, or did */
    size_t limit_count;
    /* read only by fleet.c */
    bool asked; /* fleet_set_wait has loaded it, or tried to */
    struct handler_row *rows;
    size_t row_count;
    struct fleet_table *tables;
    size_t table_count;
    /* what runs, if tags have a limit of another name, and the account may read dq_task */
    struct poller_tasks *under;
    size_t under_count;
};

/* Five statements that read small tables, and one for limits that several tags may share. Free *ret
 * with fleet_done, also after a failure. */
int fleet_load(struct db *db, struct fleet *ret, struct err *err)
    __attribute__((warn_unused_result));
/* Without what they serve: one statement. */
int fleet_load_dqds(struct db *db, struct fleet *ret, struct err *err)
    __attribute__((warn_unused_result));
void fleet_done(struct fleet *f);

/* Whether a live dqd serves a tag. UNKNOWN: the dqd is of an older release, or has just been
 * started. */
enum fleet_serves { FLEET_SERVES_NOT, FLEET_SERVES, FLEET_SERVES_UNKNOWN };
/* *ret_row: the handler, if it serves the tag, else NULL; it may be NULL itself. */
enum fleet_serves fleet_dqd_serves(const struct fleet *f, const struct poller_info *dqd,
                                   const char *tag, const struct handler_row **ret_row);
/* All live dqds together: whether one serves the tag; UNKNOWN also if none is alive. *ret_row: the
 * first handler. */
enum fleet_serves fleet_serves(const struct fleet *f, const char *tag,
                               const struct handler_row **ret_row);
/* The handlers of a live dqd, in the order of its file; *ret_count 0 if they are not known. */
const struct handler_row *fleet_handlers(const struct fleet *f, const struct poller_info *dqd,
                                         size_t *ret_count);
/* Why a tag rests at a live dqd, or is refused or slow; NULL: it is not. A pass that has ended
 * keeps its rests: the next one has not seen yet that the handler can be started. */
const struct handler_rest *fleet_rest(const struct fleet *f, const struct poller_info *dqd,
                                      const char *tag);
/* The same of the live dqds that serve it: refused or slow if one says so, as the server is the
 * same for all; rests only if it does at each of them. */
const struct handler_rest *fleet_rests(const struct fleet *f, const char *tag);
/* "rests", "is refused", "is slow". */
extern const char *const fleet_reasons[];
/* A new task that its producer has tried t->attempt times: unless it has a time of its own, it is
 * due after the next wait of the handler's retry list, as a live dqd that serves the tag has it,
 * else of the default list. ERR_DATA if no attempt is left. *f is loaded by the first call, if
 * there is a connection, and stays empty if that fails. */
int fleet_set_wait(struct db *db, struct fleet *f, bool timed, struct task_new *t, struct err *err)
    __attribute__((warn_unused_result));
/* The dqd that was heard last and did not delete its row, as resident ones do at their end; NULL:
 * there is none. */
const struct poller_info *fleet_last(const struct fleet *f);

/* global_max_running of a tag, as the live dqds that serve it have it: the greatest one; 0: one has
 * none. If they disagree about it or about the limit, or another one under that limit has no
 * handler for the tag, and so does not count it, *ret_differ (NULL: not wanted) becomes a sentence
 * that names two, heap memory; else NULL. */
uint32_t fleet_limit(const struct fleet *f, const char *tag, char **ret_differ);
/* The name of the limit of a tag, as the first live dqd that serves it has it. */
const char *fleet_limit_name(const struct fleet *f, const char *tag);
/* The limit of a tag, as the live dqds that serve it and the rows of dq_limit have it. pause: of
 * the tag, by its name or a glob; its reason. Texts are those of f and the pause. */
struct limit fleet_limit_of(const struct fleet *f, const char *tag, int64_t paused_until_at,
                            const char *reason);
/* How many tasks run under the limit of a tag. own: those of the tag. */
uint64_t fleet_running(const struct fleet *f, const char *tag, uint64_t own);
/* Whether a live dqd serves a tag of that name, or has it as a limit. */
bool fleet_uses_limit(const struct fleet *f, const char *name);
/* As tag_store_list, but late_from_at counts from when a task of the tag was due and its pauses and
 * its limit let it start: the one rule by which a tag is late. None is late that merely waits for
 * these. What runs, and so a limit that is full, does not count. f may be empty. */
int fleet_list_tags(const struct fleet *f, struct db *db, const char *tag_glob,
                    const struct tag_count_how *how, struct tag_info **ret, size_t *ret_count,
                    int64_t *ret_now_at, struct err *err) __attribute__((warn_unused_result));
/* Appends why no dqd may start a task of the tag now, as limit_put; nothing if one may. */
enum limit_why fleet_put_limit(struct buf *b, const struct fleet *f, const struct tag_info *t,
                               int64_t now_at);
/* The same, and also that no dqd serves the tag, or that its handler cannot be started. */
void fleet_put_waits(struct buf *b, const struct fleet *f, const struct tag_info *t,
                     int64_t now_at);
/* The known tag that is most like a misspelt one, heap memory; NULL: none is near. */
char *fleet_nearest(const struct fleet *f, const char *tag);

/* "vm, 40s ago": the dqd that ended last, or was seen last; nothing if none is known. */
void fleet_put_last(struct buf *b, const struct fleet *f);

/* Notes, best effort: an account that may not read these tables gets none. Without -q only. */
/* If no dqd is alive. Flushes stdout first, so that it follows what is shown there. */
void fleet_note_dqds(struct cmd_context *c);
/* If no dqd is alive, or none of them serves the tag; returns whether the latter. */
bool fleet_note_tag(struct cmd_context *c, const char *tag);
/* The same for a fleet that was loaded. */
void fleet_say_dqds(const struct cmd_context *c, const struct fleet *f);
bool fleet_say_tag(const struct cmd_context *c, const struct fleet *f, const char *tag);

#endif
