/*
 * doctor_host.h - the checks of `dq doctor` that look at this host: its files.
 */
#ifndef DQ_CLI_JUDGE_DOCTOR_HOST_H
#define DQ_CLI_JUDGE_DOCTOR_HOST_H

#include "cli/judge/doctor.h"

doctor_check doctor_host_configuration, doctor_host_password, doctor_host_handlers;

#endif
