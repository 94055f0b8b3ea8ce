/*
 * doctor_host.h - the checks of `dq doctor` that look at this host: its files.
 */
#ifndef DQ_CLI_JUDGE_DOCTOR_HOST_H
#define DQ_CLI_JUDGE_DOCTOR_HOST_H

#include "cli/judge/doctor.h"

void doctor_host_configuration(struct doctor *d, struct doctor_finding *f);
void doctor_host_password(struct doctor *d, struct doctor_finding *f);
void doctor_host_handlers(struct doctor *d, struct doctor_finding *f);

#endif
