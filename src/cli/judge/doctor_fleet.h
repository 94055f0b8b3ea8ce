/*
 * doctor_fleet.h - the checks of `dq doctor` that look at what the dqds serve.
 */
#ifndef DQ_CLI_JUDGE_DOCTOR_FLEET_H
#define DQ_CLI_JUDGE_DOCTOR_FLEET_H

#include "cli/judge/doctor.h"

void doctor_fleet_tags(struct doctor *d, struct doctor_finding *f);
void doctor_fleet_starts(struct doctor *d, struct doctor_finding *f);

#endif
