/*
 * doctor_queue.h - the checks of `dq doctor` that look at the tables, and at the dqds that use
 * them.
 */
#ifndef DQ_CLI_JUDGE_DOCTOR_QUEUE_H
#define DQ_CLI_JUDGE_DOCTOR_QUEUE_H

#include "cli/judge/doctor.h"

void doctor_queue_schema(struct doctor *d, struct doctor_finding *f);
void doctor_queue_procedures(struct doctor *d, struct doctor_finding *f);
void doctor_queue_plans(struct doctor *d, struct doctor_finding *f);
void doctor_queue_rows(struct doctor *d, struct doctor_finding *f);
void doctor_queue_dqds(struct doctor *d, struct doctor_finding *f);

#endif
