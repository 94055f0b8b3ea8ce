/*
 * completion_scripts.h - the files of etc/completion, which the build turns into strings.
 */
#ifndef DQ_CLI_LINE_COMPLETION_SCRIPTS_H
#define DQ_CLI_LINE_COMPLETION_SCRIPTS_H

extern const char completion_scripts_bash[], completion_scripts_zsh[], completion_scripts_fish[];

#endif
