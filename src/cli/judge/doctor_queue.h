/*
 * doctor_queue.h - the checks of `dq doctor` that look at the tables, at the dqds that use them,
 * and at what these serve.
 */
#ifndef DQ_CLI_JUDGE_DOCTOR_QUEUE_H
#define DQ_CLI_JUDGE_DOCTOR_QUEUE_H

#include "cli/judge/doctor.h"

doctor_check doctor_queue_schema, doctor_queue_procedures, doctor_queue_plans, doctor_queue_rows,
    doctor_queue_dqds, doctor_queue_tags, doctor_queue_starts;

#endif
