/*
 * look.c - what dqd asks the database about waiting tasks, and when. A case of looks.tbl is a
 * little play: events, and after each '>' what is to follow.
 */
#include "poller/look.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table_rows.h"

#define TAGS_MOST 64
#define BEGIN_US INT64_C(1000000000) /* on the steady clock; the database's clock shows 0 ms */

struct play {
    struct look look;
    struct look_tag tags[TAGS_MOST];
    struct dbclock clock;
    struct look_step step; /* the last one */
    int64_t now_us;
    bool in_round; /* after a claim that failed */
};

static void begin(struct play *p, size_t tags)
{
    const struct look_settings s = {.poll_us = {200000, 200000},
                                    .hold_us = 200000,
                                    .lease_us = 60000000,
                                    .slots = 32,
                                    .claim_batch = 500};

    *p = (struct play){.now_us = BEGIN_US};
    dbclock_sample(&p->clock, BEGIN_US, BEGIN_US, 0);
    look_init(&p->look, &s, &p->clock);
    for (size_t i = 0; i < tags; i++) {
        p->tags[i] = (struct look_tag){1, 8, .weight = 10, .next_at = TASK_TIME_NONE};
        look_add_tag(&p->look, &p->tags[i]);
    }
}

/* Milliseconds, with a fraction if need be. */
static int64_t read_us(const char *text)
{
    return (int64_t)(strtod(text, NULL) * 1000 + 0.5);
}

static struct look_tag *tag(struct play *p, const char *name)
{
    return &p->tags[name[0] - 'a'];
}

/* Of a word like a@10, ah@10 or al@10. */
static enum task_level level(const char *word)
{
    return word[1] == 'h' ? TASK_HIGH : word[1] == 'l' ? TASK_LOW : TASK_NORMAL;
}

/* The value of a word like a@10; NULL: there is no such letter in it. */
static const char *value(const char *word, char letter)
{
    const char *at = strchr(word, letter);

    return at ? at + 1 : NULL;
}

static long number(const char *word, char letter, long otherwise)
{
    const char *text = value(word, letter);

    return text ? strtol(text, NULL, 10) : otherwise;
}

/* --- settings --- */

static void begin_weight(struct play *p, uint32_t weight)
{
    size_t count = p->look.tag_count;
    p->tags[0].weight = weight;
    look_forget_tags(&p->look);
    for (size_t i = 0; i < count; i++)
        look_add_tag(&p->look, &p->tags[i]);
}

static bool set(struct play *p, const char *word)
{
    struct look_settings s = p->look.set;
    int count;

    if (sscanf(word, "tags=%d", &count) == 1) {
        look_free(&p->look);
        begin(p, (size_t)count);
        return count <= TAGS_MOST;
    }
    if (sscanf(word, "shares=%d", &count) == 1)
        look_set_shares(&p->look, (unsigned)count, 0);
    else if (sscanf(word, "write=%d", &count) == 1)
        look_set_shares(&p->look, p->look.shares, count * INT64_C(1000));
    else if (sscanf(word, "least=%d", &count) == 1)
        s.poll_us[0] = count * INT64_C(1000);
    else if (sscanf(word, "most=%d", &count) == 1)
        s.poll_us[1] = count * INT64_C(1000);
    else if (sscanf(word, "slots=%d", &count) == 1)
        s.slots = (uint32_t)count;
    else if (sscanf(word, "max=%d", &count) == 1)
        p->tags[0].max_running = (uint32_t)count;
    else if (sscanf(word, "weight=%d", &count) == 1)
        begin_weight(p, (uint32_t)count);
    else if (sscanf(word, "batch=%d", &count) == 1)
        p->tags[0].batch = (uint32_t)count;
    else if (sscanf(word, "limit=%d", &count) == 1)
        for (int i = 0; i < count; i++)
            p->tags[i].limit = 1;
    else if (!strcmp(word, "once"))
        s.once = true;
    else
        return !strcmp(word, "-");
    look_set(&p->look, &s);
    return true;
}

/* --- events --- */

/* all=COST,a@AT,b@AT..: a look at all tags that took COST. */
static void saw_all(struct play *p, char *text)
{
    int64_t sent_us = p->now_us;
    char *cost = strsep(&text, ",");

    p->now_us += read_us(cost);
    look_saw_all(&p->look, sent_us, p->now_us);
    for (size_t i = 0; i < p->look.tag_count; i++)
        look_tag_saw_none(p->look.tags[i], look_at(&p->look, p->now_us));
    for (char *word; (word = strsep(&text, ","));)
        look_tag_saw(tag(p, word), level(word), number(word, '@', 0), look_at(&p->look, p->now_us));
}

static void saw_news(struct play *p, char *text)
{
    int64_t sent_us = p->now_us;
    char *cost = strsep(&text, ",");

    p->now_us += read_us(cost);
    look_saw_news(&p->look, (uint64_t)number(cost, '#', 0), sent_us, p->now_us);
    for (char *word; (word = strsep(&text, ","));)
        look_tag_new(tag(p, word), level(word), number(word, '@', 0));
}

/* claimed=SEEN,won=W,bad=B,left=L,next=AT,took=MS,...: of the tag of the last step, in 1 ms.
 * next=none: no task of it is left. high=H, low=L: so many of those won. */
static bool claimed(struct play *p, char *text)
{
    struct look_claim c = {.seen = strtoul(strsep(&text, ","), NULL, 10),
                           .next_at = TASK_TIME_NONE};
    int64_t took_us = 1000;
    const char *taken = NULL;
    int n;

    c.won = c.seen;
    for (char *word; (word = strsep(&text, ","));) {
        if (sscanf(word, "won=%d", &n) == 1)
            c.won = (size_t)n;
        else if (sscanf(word, "bad=%d", &n) == 1)
            c.bad = (size_t)n;
        else if (sscanf(word, "left=%d", &n) == 1)
            c.left = (size_t)n;
        else if (sscanf(word, "high=%d", &n) == 1)
            c.won_of[TASK_HIGH] = (size_t)n;
        else if (sscanf(word, "low=%d", &n) == 1)
            c.won_of[TASK_LOW] = (size_t)n;
        else if (!strcmp(word, "drained"))
            c.drained[TASK_NORMAL] = true;
        else if (sscanf(word, "last=%d", &n) == 1)
            c.last[TASK_NORMAL] = (struct peek_floor){n, 7};
        else if (sscanf(word, "last-high=%d", &n) == 1)
            c.last[TASK_HIGH] = (struct peek_floor){n, 7};
        else if (!strncmp(word, "cost=", 5))
            c.cost_us = read_us(word + 5);
        else if (!strncmp(word, "took=", 5))
            took_us = read_us(word + 5);
        else if (!strcmp(word, "next=none"))
            c.next_known = true;
        else if (sscanf(word, "next=%d", &n) == 1) {
            c.next_known = true;
            c.next_at = n;
        } else if (sscanf(word, "random=%d", &n) == 1)
            c.random = (uint64_t)n;
        else if (!strcmp(word, "old"))
            c.started_before = true;
        else if (!strcmp(word, "aside"))
            c.some_aside = true;
        else if (!strcmp(word, "full"))
            c.held = LIMIT_RUNNING;
        else if (sscanf(word, "rate=%d", &n) == 1) {
            c.held = LIMIT_RATE;
            c.limit_at = n;
            c.paced = true;
        } else if (!strcmp(word, "paused") || !strcmp(word, "running") || !strcmp(word, "alone")) {
            c.held = *word == 'r' ? LIMIT_RUNNING : LIMIT_PAUSED;
            c.alone = *word == 'a';
            c.limit_at = INT64_MAX;
        } else if (sscanf(word, "turn=%d", &n) == 1)
            c.turn_ms = n;
        else if (!strcmp(word, "left-over"))
            c.left_over = true;
        else if (!strncmp(word, "taken", 5))
            taken = word + 5;
        else if (!strcmp(word, "guarded"))
            c.again = true;
        else
            return false;
    }
    c.won_of[TASK_NORMAL] = c.won - c.won_of[TASK_HIGH] - c.won_of[TASK_LOW];
    c.answered_us = p->now_us;
    p->now_us += took_us;
    look_tag_met(p->step.tag, taken, taken && *taken, c.won, p->now_us);
    look_claimed(&p->look, p->step.tag, &c, p->now_us);
    return true;
}

/* failed=WHY,RANDOM,MS: after so long. */
static bool failed(struct play *p, char *text)
{
    static const char *const names[] = {"deadlock", "limit-locked", "locked", "refused"};
    const char *name = strsep(&text, ",");
    uint64_t random = text ? strtoull(text, NULL, 10) : 0;
    const char *took = text ? value(text, ',') : NULL;
    int64_t sent_us = p->now_us;

    p->now_us += took ? read_us(took) : 0;
    if (!strcmp(name, "step")) {
        look_end_round(&p->look);
        return true;
    }
    for (int why = LOOK_DEADLOCK; why <= LOOK_REFUSED; why++)
        if (!strcmp(name, names[why])) {
            p->in_round = look_claim_failed(&p->look, p->step.tag, (enum look_failure)why, sent_us,
                                            p->now_us, random);
            return true;
        }
    return false;
}

/* recorded=a*ROWS,MS: after so long. */
static void recorded(struct play *p, const char *word)
{
    int64_t took_us = read_us(value(word, ','));
    struct look_tag *t = tag(p, word);
    p->now_us += took_us;
    look_changed(&p->look, t, &t->results, (size_t)number(word, '*', 0), took_us, p->now_us);
}

/* queue=a*3 start=a*2 took=a*50 end=a*1 rest=a short=a */
static bool job_event(struct play *p, const char *event, const char *word)
{
    struct look_tag *t = tag(p, word);
    long n = number(word, '*', 1);

    if (!strcmp(event, "rest")) {
        look_tag_rest(t, p->now_us);
    } else if (!strcmp(event, "short")) {
        look_tag_short(t, p->now_us);
    } else if (!strcmp(event, "others-wait")) {
        t->others_wait = true;
    } else if (!strcmp(event, "mended")) {
        look_tag_handler_changed(t);
    } else if (!strcmp(event, "returned")) {
        look_tag_returned(t);
    } else if (!strcmp(event, "took")) {
        look_tag_took(t, n * 1000);
    } else if (!strcmp(event, "unrecorded") || !strcmp(event, "kept-back")) {
        *(*event == 'u' ? &t->unrecorded : &t->kept_back) = (uint32_t)n;
    } else if (!strcmp(event, "queue")) {
        while (n--)
            look_job_queued(&p->look, t);
    } else if (!strcmp(event, "run")) {
        for (; n; n--) {
            look_job_queued(&p->look, t);
            look_job_started(&p->look, t);
        }
    } else if (!strcmp(event, "end") || !strcmp(event, "back")) {
        while (n--)
            look_job_gone(&p->look, t, *event == 'e');
    } else {
        return false;
    }
    return true;
}

static void elsewhere(struct play *p, char *text)
{
    struct look_elsewhere e[TAGS_MOST];
    uint64_t processes = strtoul(strsep(&text, ","), NULL, 10);
    for (size_t i = 0; i < TAGS_MOST; i++)
        e[i] = (struct look_elsewhere){&p->tags[i], 0};
    for (char *word; (word = strsep(&text, ","));)
        e[word[0] - 'a'].tasks = (uint64_t)number(word, '*', 0);
    look_turn_elsewhere(&p->look.turn, e, p->look.tag_count, processes);
}

static bool happens(struct play *p, char *word)
{
    char *event = strsep(&word, "=");
    int64_t sent_us = p->now_us;

    if (event[0] == '+')
        p->now_us += read_us(event + 1);
    else if (!strcmp(event, "settled"))
        look_settled(&p->look, word && strstr(word, "back"), word && strstr(word, "idle"));
    else if (!strcmp(event, "reaped"))
        look_reaped(&p->look);
    else if (!strcmp(event, "woken"))
        look_woken(&p->look, p->now_us);
    else if (!strcmp(event, "limits-changed"))
        look_limits_changed(&p->look);
    else if (!strcmp(event, "came-back"))
        look_came_back(&p->look);
    else if (!strcmp(event, "clock-unknown"))
        p->clock.known = false;
    else if (!word)
        return false;
    else if (!strcmp(event, "all"))
        saw_all(p, word);
    else if (!strcmp(event, "gave-up")) {
        p->now_us += read_us(word);
        return look_gave_up(&p->look, p->step.limit_ms, sent_us, p->now_us);
    } else if (!strcmp(event, "news"))
        saw_news(p, word);
    else if (!strcmp(event, "next")) { /* of the tag of the last step: next=COST@AT */
        int64_t next_at[] = {number(word, '@', TASK_TIME_NONE), TASK_TIME_NONE, TASK_TIME_NONE};
        p->now_us += read_us(word);
        look_saw_tag(&p->look, p->step.tag, next_at, sent_us, p->now_us);
    } else if (!strcmp(event, "claimed"))
        return claimed(p, word);
    else if (!strcmp(event, "failed"))
        return failed(p, word);
    else if (!strcmp(event, "recorded"))
        recorded(p, word);
    else if (!strcmp(event, "elsewhere"))
        elsewhere(p, word);
    else
        return job_event(p, event, word);
    return true;
}

/* --- what follows --- */

static void show_step(struct play *p, const char *expected, char *text, size_t size)
{
    char processes[16] = "", owed[64] = "";
    size_t owes[TASK_LEVELS];
    char name = p->step.tag ? (char)('a' + (p->step.tag - p->tags)) : '?';

    switch (p->step.what) {
    case LOOK_END:
        snprintf(text, size, "end");
        break;
    case LOOK_AT_ALL:
        snprintf(text, size, p->step.limit_ms == 100 ? "all" : "all:%d", (int)p->step.limit_ms);
        break;
    case LOOK_AT_NEWS:
        snprintf(text, size, "news:%d", (int)p->step.above_id);
        break;
    case LOOK_AT_TAG:
        snprintf(text, size, "ask:%c", name);
        break;
    case LOOK_CLAIM:
        if (strchr(expected, '/'))
            snprintf(processes, sizeof processes, "/%u", p->step.processes);
        task_levels_owed(p->step.tag->levels, p->step.tag->passed, p->step.count, owes);
        if (strstr(expected, "owed"))
            snprintf(owed, sizeof owed, ",owed=%zu-%zu-%zu", owes[TASK_HIGH], owes[TASK_NORMAL],
                     owes[TASK_LOW]);
        snprintf(text, size, "claim:%c,%zu%s%s%s%s", name, p->step.count, processes, owed,
                 p->step.all_shares || p->look.shares == 1 ? "" : ",own",
                 !strstr(expected, "next") ? ""
                 : p->step.next            ? ",next"
                                           : ",no-next");
        break;
    }
}

static void show(struct play *p, const char *expected, char *text, size_t size)
{
    const char *key = value(expected, ':');

    if (!strncmp(expected, "wait", 4)) {
        int64_t us = look_when(&p->look) - p->now_us;
        snprintf(text, size, us > 0 ? "wait:%g" : "wait:0", (double)us / 1000);
    } else if (!strncmp(expected, "floor", 5)) {
        const struct peek_floor *f = &tag(p, key)->floor[level(key)];
        snprintf(text, size, "floor:%.*s@%d#%d", (int)strcspn(key, "@"), key, (int)f->at,
                 (int)f->id);
    } else if (!strncmp(expected, "row", 3)) {
        snprintf(text, size, "row:%c@%g", *key, (double)tag(p, key)->claims.row_us / 1000);
    } else if (!strncmp(expected, "result", 6)) {
        snprintf(text, size, "result:%c@%g", *key, (double)tag(p, key)->results.row_us / 1000);
    } else if (!strncmp(expected, "early", 5)) {
        snprintf(text, size, "early:%d",
                 (int)look_tag_early_ms(p->tags, &p->look.pace, p->look.set.once));
    } else if (!strcmp(expected, "over") || !strcmp(expected, "not-over")) {
        snprintf(text, size, "%s", look_is_empty(&p->look) ? "over" : "not-over");
    } else if (!strcmp(expected, "goes-on") || !strcmp(expected, "ends")) {
        snprintf(text, size, "%s", p->in_round ? "goes-on" : "ends");
    } else {
        p->step = look_next(&p->look, p->now_us);
        show_step(p, expected, text, size);
    }
}

static bool check_case(char **cell, const char *where)
{
    struct play p;
    char got[64];
    bool ok = true;

    begin(&p, 1);
    for (char *word; ok && (word = strsep(&cell[1], " "));)
        if (*word && !(ok = set(&p, word)))
            print_error("%s: %s: what is %s?\n", where, cell[0], word);
    for (char *word; ok && (word = strsep(&cell[2], " "));) {
        if (word[0] == '>') {
            show(&p, word + 1, got, sizeof got);
            ok = !strcmp(word + 1, got);
            if (!ok)
                print_error("%s: %s: %s follows, not %s\n", where, cell[0], got, word + 1);
        } else if (*word && !(ok = happens(&p, word))) {
            print_error("%s: %s: what is %s?\n", where, cell[0], word);
        }
    }
    look_free(&p.look);
    return ok;
}

/* --- how often dqd lets itself be woken --- */

#define SECOND INT64_C(1000000)

/* Three tags, so that a wake costs one look at all of them, which takes cost_us. */
static void begin_woken(struct play *p, int64_t cost_us)
{
    begin(p, 3);
    look_saw_all(&p->look, p->now_us - cost_us, p->now_us);
    look_saw_all(&p->look, p->now_us - cost_us, p->now_us);
}

static void many_paused_tags_are_asked_less_often(void **state)
{
    static struct look_tag tag[1000];
    struct look_tag *tags[1000];

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        tags[i] = &tag[i];
        tag[i].hold.because = LIMIT_PAUSED;
        look_tag_hold(tags, i + 1, tags[i], INT64_MAX, false, 200000, 1);
    }
    assert_int_equal(tag[19].hold.until_us, 200001);
    assert_int_equal(tag[40].hold.until_us, 3 * 200000 + 1);
    assert_int_equal(tag[999].hold.until_us, 5000001);
    look_tag_lift(tags, 1000, false); /* a wake-up is about others */
    assert_int_equal(tag[999].hold.until_us, 5000001);
    look_tag_lift(tags, 1000, true);
    assert_int_equal(tag[999].hold.until_us, 0);
}

static void a_tag_may_be_paused_after_some_claims_in_vain(void **state)
{
    struct play p;
    const struct look_claim vain = {.next_known = true, .next_at = TASK_TIME_NONE};
    struct look_tag *t;

    (void)state;
    begin_woken(&p, 1);
    t = p.look.tags[0];
    p.look.wanted = 8;
    for (int i = 0; i < 3; i++) {
        assert_false(look_tag_is_doubtful(t));
        look_claimed(&p.look, t, &vain, p.now_us);
    }
    assert_true(look_tag_is_doubtful(t));
    look_claimed(&p.look, t, &(struct look_claim){.seen = 1, .won = 1}, p.now_us);
    assert_false(look_tag_is_doubtful(t));
    for (int i = 2; i--;) { /* that one says when its rate allows more: it is not asked for twice */
        const struct look_claim rate = {
            .held = LIMIT_RATE, .limit_at = 1, .seen = (size_t)i, .won = (size_t)i};
        look_claimed(&p.look, t, &rate, p.now_us);
        assert_true(look_tag_is_doubtful(t) == !i);
    }
    look_free(&p.look);
}

static void cheap_looks_for_wakes_are_two_milliseconds_apart(void **state)
{
    struct play p;
    int looks = 0;

    (void)state;
    begin_woken(&p, 100);
    for (int64_t now_us = BEGIN_US; now_us < BEGIN_US + SECOND; looks++)
        now_us = look_woken(&p.look, now_us);
    assert_int_equal(looks, 500);
    look_free(&p.look);
}

static void a_look_that_takes_long_for_once_puts_no_wake_off(void **state)
{
    struct play p;

    (void)state;
    begin_woken(&p, 100);
    look_saw_all(&p.look, BEGIN_US - 100000, BEGIN_US);
    assert_int_equal(look_woken(&p.look, BEGIN_US), BEGIN_US + 2000);
    look_saw_all(&p.look, BEGIN_US + 19800, BEGIN_US + 20000);
    assert_int_equal(look_woken(&p.look, BEGIN_US + 20000), BEGIN_US + 22000);
    look_saw_all(&p.look, BEGIN_US + 40000 - 5 * SECOND, BEGIN_US + 40000);
    assert_true(look_woken(&p.look, BEGIN_US + 40000) > BEGIN_US + 10 * SECOND);
    look_free(&p.look);
}

static void dear_looks_for_wakes_take_a_quarter_of_the_time(void **state)
{
    struct play p;
    int64_t cost_us = 0;

    (void)state;
    begin_woken(&p, 100);
    look_saw_all(&p.look, BEGIN_US - 30000, BEGIN_US);
    for (int64_t now_us = BEGIN_US; now_us < BEGIN_US + 100 * SECOND; cost_us += 30000)
        now_us = look_woken(&p.look, now_us);
    assert_true(cost_us >= 24 * SECOND && cost_us <= 26 * SECOND);
    look_free(&p.look);
}

int main(void)
{
    const struct CMUnitTest others[] = {
        cmocka_unit_test(many_paused_tags_are_asked_less_often),
        cmocka_unit_test(a_tag_may_be_paused_after_some_claims_in_vain),
        cmocka_unit_test(cheap_looks_for_wakes_are_two_milliseconds_apart),
        cmocka_unit_test(a_look_that_takes_long_for_once_puts_no_wake_off),
        cmocka_unit_test(dear_looks_for_wakes_take_a_quarter_of_the_time),
    };

    return table_run_rows("looks.tbl", 3, check_case, others, sizeof others / sizeof *others);
}
