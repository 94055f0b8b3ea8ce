/*
 * doctor_server.h - the checks of `dq doctor` that look at the server and at this account's rights.
 */
#ifndef DQ_CLI_JUDGE_DOCTOR_SERVER_H
#define DQ_CLI_JUDGE_DOCTOR_SERVER_H

#include "cli/judge/doctor.h"

doctor_check doctor_server_connection, doctor_server_durability, doctor_server_isolation,
    doctor_server_packet, doctor_server_clock, doctor_server_transactions, doctor_server_rights;

#endif
