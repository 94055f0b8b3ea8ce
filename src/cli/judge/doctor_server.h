/*
 * doctor_server.h - the checks of `dq doctor` that look at the server and at this account's rights.
 */
#ifndef DQ_CLI_JUDGE_DOCTOR_SERVER_H
#define DQ_CLI_JUDGE_DOCTOR_SERVER_H

#include "cli/judge/doctor.h"

void doctor_server_connection(struct doctor *d, struct doctor_finding *f);
void doctor_server_durability(struct doctor *d, struct doctor_finding *f);
void doctor_server_isolation(struct doctor *d, struct doctor_finding *f);
void doctor_server_packet(struct doctor *d, struct doctor_finding *f);
void doctor_server_clock(struct doctor *d, struct doctor_finding *f);
void doctor_server_transactions(struct doctor *d, struct doctor_finding *f);
void doctor_server_rights(struct doctor *d, struct doctor_finding *f);

#endif
