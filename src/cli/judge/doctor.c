/*
 * doctor.c - see doctor.h. Invariant: a finding that is not ok has no text of one that is.
 */
#include "cli/judge/doctor.h"

const char *const doctor_setting_names[DOCTOR_SETTING_COUNT] = {
    [DOCTOR_FLUSH] = "innodb_flush_log_at_trx_commit",
    [DOCTOR_DOUBLEWRITE] = "innodb_doublewrite",
    [DOCTOR_FORCE_RECOVERY] = "innodb_force_recovery",
    [DOCTOR_LOG_BIN] = "log_bin",
    [DOCTOR_SYNC_BINLOG] = "sync_binlog",
    [DOCTOR_BINLOG_FORMAT] = "binlog_format",
    [DOCTOR_READ_ONLY] = "read_only",
};

void doctor_find(struct doctor_finding *f, enum doctor_verdict verdict, const char *fmt, ...)
{
    va_list ap;

    if (verdict == DOCTOR_OK && f->verdict != DOCTOR_OK)
        return;
    if (verdict != DOCTOR_OK && f->verdict == DOCTOR_OK)
        buf_reset(&f->text);
    if (verdict > f->verdict)
        f->verdict = verdict;
    buf_str(&f->text, f->text.len ? "; " : "");
    va_start(ap, fmt);
    buf_vprintf(&f->text, fmt, ap);
    va_end(ap);
}

void doctor_find_failed(struct doctor_finding *f, const struct err *err)
{
    if (err->code == ERR_DENIED)
        doctor_find(f, DOCTOR_UNKNOWN, "not known: %s", err->text);
    else
        doctor_find(f, DOCTOR_BAD, "%s", err->text);
}

const char *doctor_setting(const struct doctor *d, enum doctor_setting s)
{
    return d->settings[s] ? d->settings[s] : "";
}
