/*
 * db_error.c - error numbers of server and client library, by class.
 *
 * Invariant: a text made here never quotes data. A server's message is shown whole only if it
 * quotes nothing but names (of servers, accounts, tables, columns, keys, settings) and values of
 * settings. From any other message, quoted values are removed.
 */
#include "store/db/db_error.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SERVER_TEXT: it quotes names only. SERVER_VALUES: it may quote values. */
enum fault_flag { KEEP = 0, DROP = 1, SERVER_TEXT = 2, SERVER_VALUES = 4 };

struct fault {
    unsigned number;
    int code;
    unsigned flags;
    const char *text; /* shown after the server's text, or instead of it */
};

#define GRANTS "check user and password_file in [mysql] and the account's grants"
#define A_RIGHT "grant it: grants.sql.example lists what each account needs, see dqd(8)"
#define WHERE DB_ERROR_WHERE
#define TLS "check the tls settings in [mysql]"
#define INIT "the schema is missing or of another version: run dq init"
#define NO_SPACE "the server has no disk space left: free some, then try again"
#define NO_MEMORY "the server is out of memory"
#define ERROR_LOG "see the server's error log"
#define NEW_PASSWORD                                                                               \
    "the account's password has expired: set a new one, on the server and in password_file"
#define OFFLINE "the server is offline for maintenance"
#define GROUP "group replication refuses transactions here at the moment"
#define NEW_PRIMARY "the group's new primary is not ready yet"
#define READ_ONLY "the server is read-only at the moment"
#define TRY_AGAIN "another session was changing the same rows: try again"
#define LOCKED "a row or the whole table is locked by another session"
#define OFFLINE_ONLY                                                                               \
    "this server can change the table only while nobody writes to it: see doc/upgrading"
#define BAD_DATA "the server refused a value as malformed or out of range"

/* clang-format off */
static const struct fault faults[] = {
    {1015, ERR_UNAVAILABLE, SERVER_TEXT, ERROR_LOG},                      /* ER_CANT_LOCK: a read-only file system among others */
    {1020, ERR_TRANSIENT, KEEP, TRY_AGAIN},                               /* ER_CHECKREAD, with innodb_snapshot_isolation */
    {1021, ERR_UNAVAILABLE, KEEP, NO_SPACE},                              /* ER_DISK_FULL */
    {1023, ERR_UNAVAILABLE, SERVER_TEXT, ERROR_LOG},                      /* ER_ERROR_ON_CLOSE */
    {1024, ERR_UNAVAILABLE, SERVER_TEXT, ERROR_LOG},                      /* ER_ERROR_ON_READ */
    {1026, ERR_UNAVAILABLE, SERVER_TEXT, ERROR_LOG},                      /* ER_ERROR_ON_WRITE */
    {1028, ERR_TRANSIENT, SERVER_TEXT, "try again"},                      /* ER_FILSORT_ABORT */
    {1030, ERR_UNAVAILABLE, SERVER_TEXT, ERROR_LOG},                      /* ER_GET_ERRNO: disk full among others */
    {1036, ERR_UNAVAILABLE, DROP, READ_ONLY},                             /* ER_OPEN_AS_READONLY, with innodb_read_only */
    {1037, ERR_UNAVAILABLE, KEEP, NO_MEMORY},                             /* ER_OUTOFMEMORY */
    {1038, ERR_UNAVAILABLE, KEEP, NO_MEMORY},                             /* ER_OUT_OF_SORTMEMORY */
    {1040, ERR_UNAVAILABLE, DROP, "the server has too many connections"}, /* ER_CON_COUNT_ERROR */
    {1041, ERR_UNAVAILABLE, DROP, NO_MEMORY},                             /* ER_OUT_OF_RESOURCES */
    {1044, ERR_DENIED, SERVER_TEXT, "check user and database in [mysql] and the account's grants"}, /* ER_DBACCESS_DENIED_ERROR */
    {1045, ERR_DENIED, SERVER_TEXT, GRANTS},                                                        /* ER_ACCESS_DENIED_ERROR */
    {1047, ERR_UNAVAILABLE, DROP, "the server is not part of the primary cluster at the moment"},   /* Galera */
    {1048, ERR_DATA, SERVER_TEXT, BAD_DATA},                                                        /* ER_BAD_NULL_ERROR */
    {1049, ERR_CONFIG, SERVER_TEXT, "check database in [mysql], or create it with dq init"},        /* ER_BAD_DB_ERROR */
    {1053, ERR_UNAVAILABLE, DROP, "the server is shutting down"},                                   /* ER_SERVER_SHUTDOWN */
    {1054, ERR_CONFIG, SERVER_TEXT, INIT},                                                          /* ER_BAD_FIELD_ERROR */
    {1062, ERR_DUPLICATE, SERVER_VALUES, "a unique key is taken"},                                  /* ER_DUP_ENTRY */
    {1114, ERR_UNAVAILABLE, KEEP, NO_SPACE},                                                        /* ER_RECORD_FILE_FULL */
    {1118, ERR_DATA, SERVER_TEXT, NULL}, /* ER_TOO_BIG_ROWSIZE: MySQL 5.7, a body of more than a tenth of the redo log */
    {1129, ERR_UNAVAILABLE, DROP | SERVER_TEXT, NULL},                                   /* ER_HOST_IS_BLOCKED */
    {1130, ERR_DENIED, DROP | SERVER_TEXT, GRANTS},                                      /* ER_HOST_NOT_PRIVILEGED */
    {1135, ERR_UNAVAILABLE, DROP, "the server cannot make a thread for the connection"}, /* ER_CANT_CREATE_THREAD */
    {1142, ERR_DENIED, SERVER_TEXT, A_RIGHT},                                            /* ER_TABLEACCESS_DENIED_ERROR */
    {1143, ERR_DENIED, SERVER_TEXT, A_RIGHT},                                            /* ER_COLUMNACCESS_DENIED_ERROR */
    {1146, ERR_CONFIG, SERVER_TEXT, INIT},                                               /* ER_NO_SUCH_TABLE */
    {1152, ERR_LOST, DROP, "the server closed the connection"},                       /* ER_ABORTING_CONNECTION */
    {1153, ERR_DATA, DROP, "larger than the server's max_allowed_packet: raise it, or send less"}, /* ER_NET_PACKET_TOO_LARGE */
    {1154, ERR_LOST, DROP, "the connection broke"},               /* ER_NET_READ_ERROR_FROM_PIPE */
    {1155, ERR_LOST, DROP, "the connection broke"},               /* ER_NET_FCNTL_ERROR */
    {1156, ERR_LOST, DROP, "the connection broke"},               /* ER_NET_PACKETS_OUT_OF_ORDER */
    {1157, ERR_LOST, DROP, "the connection broke"},               /* ER_NET_UNCOMPRESS_ERROR */
    {1158, ERR_LOST, DROP, "the connection broke"},               /* ER_NET_READ_ERROR */
    {1159, ERR_LOST, DROP, "the connection broke"},               /* ER_NET_READ_INTERRUPTED */
    {1160, ERR_LOST, DROP, "the connection broke"},               /* ER_NET_ERROR_ON_WRITE */
    {1161, ERR_LOST, DROP, "the connection broke"},               /* ER_NET_WRITE_INTERRUPTED */
    {1176, ERR_CONFIG, SERVER_TEXT, INIT},                        /* ER_KEY_DOES_NOT_EXITS */
    {1180, ERR_LOST, DROP, "the server failed while committing"}, /* ER_ERROR_DURING_COMMIT: the outcome has to be looked up */
    /* ER_NEW_ABORTING_CONNECTION: it may do so only while the server is read-only */
    {1184, ERR_UNAVAILABLE, DROP,
     "the server closes new connections: a statement of its init_connect failed, see its error log"},
    {1197, ERR_DATA, KEEP, "larger than the server's max_binlog_cache_size: raise it, or send less"}, /* ER_TRANS_CACHE_FULL */
    {1203, ERR_UNAVAILABLE, DROP, "the account has too many connections"}, /* ER_TOO_MANY_USER_CONNECTIONS */
    {1205, ERR_LOCKED, KEEP, LOCKED},                                      /* ER_LOCK_WAIT_TIMEOUT: rolls back the statement only */
    {1206, ERR_TRANSIENT, KEEP, "the server has too many row locks at the moment: try again"}, /* ER_LOCK_TABLE_FULL */
    {1213, ERR_TRANSIENT, KEEP, TRY_AGAIN},                                                    /* ER_LOCK_DEADLOCK */
    {1226, ERR_UNAVAILABLE, DROP, "the account has used up one of its limits on the server"},  /* ER_USER_LIMIT_REACHED */
    {1227, ERR_DENIED, SERVER_TEXT, GRANTS},                                                   /* ER_SPECIFIC_ACCESS_DENIED_ERROR */
    {1251, ERR_CONFIG, DROP | SERVER_TEXT, NULL},                                              /* ER_NOT_SUPPORTED_AUTH_MODE */
    {1264, ERR_DATA, SERVER_TEXT, BAD_DATA},                                                   /* ER_WARN_DATA_OUT_OF_RANGE */
    {1265, ERR_DATA, SERVER_TEXT, BAD_DATA},                                                   /* WARN_DATA_TRUNCATED */
    {1286, ERR_CONFIG, SERVER_TEXT, "dq needs InnoDB"},                                        /* ER_UNKNOWN_STORAGE_ENGINE */
    {1290, ERR_UNAVAILABLE, DROP, READ_ONLY},                                                  /* ER_OPTION_PREVENTS_STATEMENT */
    {1292, ERR_DATA, SERVER_VALUES, BAD_DATA},                                                 /* ER_TRUNCATED_WRONG_VALUE */
    {1297, ERR_TRANSIENT, SERVER_TEXT, "try again"},                                           /* ER_GET_TEMPORARY_ERRMSG */
    {1300, ERR_DATA, SERVER_VALUES, BAD_DATA},                                                 /* ER_INVALID_CHARACTER_STRING */
    {1304, ERR_DUPLICATE, SERVER_TEXT, NULL},                                                  /* ER_SP_ALREADY_EXISTS */
    {1317, ERR_TRANSIENT, KEEP, "the statement was interrupted on the server: try again"},     /* ER_QUERY_INTERRUPTED */
    {1366, ERR_DATA, SERVER_VALUES, BAD_DATA},                             /* ER_TRUNCATED_WRONG_VALUE_FOR_FIELD */
    {1370, ERR_DENIED, SERVER_TEXT, A_RIGHT},                              /* ER_PROCACCESS_DENIED_ERROR */
    {1406, ERR_DATA, SERVER_TEXT, NULL},                                   /* ER_DATA_TOO_LONG: names the column only */
    {1412, ERR_TRANSIENT, KEEP, "the table was being altered: try again"}, /* ER_TABLE_DEF_CHANGED */
    {1441, ERR_DATA, KEEP, BAD_DATA},                                      /* ER_DATETIME_FUNCTION_OVERFLOW */
    {1449, ERR_CONFIG, SERVER_TEXT, NULL},                                 /* ER_NO_SUCH_USER: the definer was dropped */
    {1461, ERR_UNAVAILABLE, KEEP,
     "the server has no prepared statement left: raise its max_prepared_stmt_count"}, /* ER_MAX_PREPARED_STMT_COUNT_REACHED */
    /* ER_AUTOINC_READ_FAILED */
    {1467, ERR_TRANSIENT, KEEP, "no next id: another session locks it (try again), or the table's AUTO_INCREMENT is used up"},
    {1524, ERR_DENIED, DROP | SERVER_TEXT, GRANTS},                                          /* ER_PLUGIN_IS_NOT_LOADED */
    {1534, ERR_UNAVAILABLE, SERVER_TEXT, ERROR_LOG},                                         /* ER_BINLOG_ROW_LOGGING_FAILED */
    {1598, ERR_UNAVAILABLE, SERVER_TEXT, ERROR_LOG},                                         /* ER_BINLOG_LOGGING_IMPOSSIBLE */
    {1615, ERR_TRANSIENT, KEEP, "the table was being altered: try again"},                   /* ER_NEED_REPREPARE */
    {1637, ERR_UNAVAILABLE, KEEP, "the server has too many transactions at the moment"},     /* ER_TOO_MANY_CONCURRENT_TRXS */
    {1665, ERR_CONFIG, KEEP,
     "the server's binlog_format is STATEMENT: set it to ROW or MIXED"}, /* ER_BINLOG_STMT_MODE_AND_ROW_ENGINE */
    {1690, ERR_DATA, SERVER_VALUES, BAD_DATA},                           /* ER_DATA_OUT_OF_RANGE */
    {1698, ERR_DENIED, SERVER_TEXT, GRANTS},                             /* ER_ACCESS_DENIED_NO_PASSWORD_ERROR */
    {1705, ERR_DATA, KEEP,
     "larger than the server's max_binlog_stmt_cache_size: raise it, or send less"}, /* ER_STMT_CACHE_FULL */
    {1792, ERR_UNAVAILABLE, DROP, READ_ONLY},                          /* ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION */
    {1820, ERR_DENIED, DROP, NEW_PASSWORD},                            /* ER_MUST_CHANGE_PASSWORD */
    {1835, ERR_LOST, DROP, "the connection broke"},                    /* ER_MALFORMED_PACKET */
    {1836, ERR_UNAVAILABLE, DROP, READ_ONLY},                          /* ER_READ_ONLY_MODE */
    {1845, ERR_STATE, SERVER_TEXT, OFFLINE_ONLY},                      /* ER_ALTER_OPERATION_NOT_SUPPORTED */
    {1846, ERR_STATE, SERVER_TEXT, OFFLINE_ONLY},                      /* ER_ALTER_OPERATION_NOT_SUPPORTED_REASON */
    {1862, ERR_DENIED, DROP, NEW_PASSWORD},                            /* ER_MUST_CHANGE_PASSWORD_LOGIN */
    {1873, ERR_DENIED, DROP | SERVER_TEXT, GRANTS},                    /* ER_ACCESS_DENIED_CHANGE_USER_ERROR */
    {1874, ERR_UNAVAILABLE, DROP, READ_ONLY},                          /* ER_INNODB_READ_ONLY */
    {1881, ERR_UNAVAILABLE, DROP, READ_ONLY},                          /* ER_INNODB_FORCED_RECOVERY */
    {1927, ERR_LOST, DROP, "the connection was killed on the server"}, /* ER_CONNECTION_KILLED */
    {1969, ERR_TRANSIENT, KEEP, "the statement took longer than the server's max_statement_time"}, /* ER_STATEMENT_TIMEOUT */
    {2002, ERR_UNAVAILABLE, DROP | SERVER_TEXT, WHERE},                                            /* CR_CONNECTION_ERROR */
    {2003, ERR_UNAVAILABLE, DROP | SERVER_TEXT, WHERE},                                            /* CR_CONN_HOST_ERROR */
    {2005, ERR_UNAVAILABLE, DROP | SERVER_TEXT, WHERE},                                            /* CR_UNKNOWN_HOST */
    {2006, ERR_LOST, DROP, "the connection broke"},                                                /* CR_SERVER_GONE_ERROR */
    {2012, ERR_UNAVAILABLE, DROP | SERVER_TEXT, NULL},                                             /* CR_SERVER_HANDSHAKE_ERR */
    {2013, ERR_LOST, DROP, "the connection broke"},                                                /* CR_SERVER_LOST */
    {2014, ERR_FATAL, DROP | SERVER_TEXT, NULL},                                                   /* CR_COMMANDS_OUT_OF_SYNC */
    {2020, ERR_DATA, DROP, "larger than the client library's packet limit"},                       /* CR_NET_PACKET_TOO_LARGE */
    {2026, ERR_UNAVAILABLE, DROP | SERVER_TEXT, TLS},                                              /* CR_SSL_CONNECTION_ERROR */
    {2027, ERR_LOST, DROP, "the connection broke"},                                                /* CR_MALFORMED_PACKET */
    {2055, ERR_LOST, DROP, "the connection broke"},                                                /* CR_SERVER_LOST_EXTENDED */
    {2059, ERR_CONFIG, DROP | SERVER_TEXT, NULL},                                                  /* CR_AUTH_PLUGIN_CANNOT_LOAD */
    {2061, ERR_DENIED, DROP | SERVER_TEXT, GRANTS},                                                /* CR_AUTH_PLUGIN_ERR */
    {3015, ERR_UNAVAILABLE, KEEP, NO_MEMORY},                                                      /* ER_ENGINE_OUT_OF_MEMORY */
    {3019, ERR_UNAVAILABLE, KEEP, NO_SPACE},                                                       /* ER_INNODB_UNDO_LOG_FULL */
    {3024, ERR_TRANSIENT, KEEP, "the statement took longer than the server's max_execution_time"}, /* ER_QUERY_TIMEOUT */
    {3032, ERR_UNAVAILABLE, DROP, OFFLINE},                                                        /* ER_SERVER_OFFLINE_MODE */
    {3058, ERR_TRANSIENT, KEEP, TRY_AGAIN},                                                        /* ER_USER_LOCK_DEADLOCK */
    {3098, ERR_CONFIG, SERVER_TEXT, ERROR_LOG}, /* ER_BEFORE_DML_VALIDATION_ERROR: group replication */
    {3100, ERR_LOST, DROP, "group replication failed while committing"}, /* ER_RUN_HOOK_ERROR: the outcome has to be looked up */
    {3101, ERR_TRANSIENT, KEEP, TRY_AGAIN},                                          /* ER_TRANSACTION_ROLLBACK_DURING_COMMIT */
    {3118, ERR_DENIED, DROP | SERVER_TEXT, GRANTS},                                  /* ER_ACCOUNT_HAS_BEEN_LOCKED, MySQL */
    {3159, ERR_CONFIG, DROP | SERVER_TEXT, TLS},                                     /* ER_SECURE_TRANSPORT_REQUIRED */
    {3168, ERR_UNAVAILABLE, DROP, OFFLINE},                                          /* ER_SERVER_ISNT_AVAILABLE */
    {3169, ERR_LOST, DROP, "the connection was killed on the server"},               /* ER_SESSION_WAS_KILLED */
    {3177, ERR_TRANSIENT, KEEP, TRY_AGAIN},                                          /* ER_LOCK_REFUSED_BY_ENGINE */
    {3185, ERR_UNAVAILABLE, SERVER_TEXT, ERROR_LOG},                                 /* ER_CANNOT_FIND_KEY_IN_KEYRING */
    {3231, ERR_DATA, KEEP, "larger than group replication takes: raise its limits, or send less"}, /* ER_WRITE_SET_EXCEEDS_LIMIT */
    {3572, ERR_LOCKED, KEEP, LOCKED},                                                              /* ER_LOCK_NOWAIT */
    {3675, ERR_UNAVAILABLE, KEEP, NO_SPACE},                                                       /* ER_DISK_FULL_NOWAIT */
    {3781, ERR_UNAVAILABLE, DROP, NEW_PRIMARY},                                                    /* ER_GR_HOLD_WAIT_TIMEOUT */
    {3782, ERR_UNAVAILABLE, DROP, NEW_PRIMARY},                                                    /* ER_GR_HOLD_KILLED */
    {3783, ERR_UNAVAILABLE, DROP, NEW_PRIMARY},     /* ER_GR_HOLD_MEMBER_STATUS_ERROR */
    {3796, ERR_UNAVAILABLE, DROP, GROUP},           /* ER_GRP_TRX_CONSISTENCY_NOT_ALLOWED */
    {3797, ERR_UNAVAILABLE, DROP, GROUP},           /* ER_GRP_TRX_CONSISTENCY_BEFORE */
    {3798, ERR_UNAVAILABLE, DROP, GROUP},           /* ER_GRP_TRX_CONSISTENCY_AFTER_ON_TRX_BEGIN */
    {3799, ERR_UNAVAILABLE, DROP, GROUP},           /* ER_GRP_TRX_CONSISTENCY_BEGIN_NOT_ALLOWED */
    {3955, ERR_DENIED, DROP | SERVER_TEXT, GRANTS}, /* ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK */
    {3985, ERR_UNAVAILABLE, KEEP, NO_MEMORY},       /* ER_MDL_OUT_OF_RESOURCES */
    {3989, ERR_UNAVAILABLE, DROP, "the database is read-only at the moment"}, /* ER_SCHEMA_READ_ONLY */
    {4031, ERR_LOST, DROP, "the server closed the idle connection"},          /* ER_CLIENT_INTERACTION_TIMEOUT */
    {4081, ERR_UNAVAILABLE, DROP | SERVER_TEXT, NULL},                        /* ER_DA_GLOBAL_CONN_LIMIT */
    {4082, ERR_UNAVAILABLE, DROP | SERVER_TEXT, NULL},                        /* ER_DA_CONN_LIMIT */
    {4150, ERR_DENIED, DROP | SERVER_TEXT, GRANTS},                           /* ER_USER_IS_BLOCKED, MariaDB */
    {4151, ERR_DENIED, DROP | SERVER_TEXT, GRANTS},                           /* ER_ACCOUNT_HAS_BEEN_LOCKED, MariaDB */
    /* CR_PLUGIN_NOT_ALLOWED */
    {5010, ERR_CONFIG, DROP,
     "the server asks for the password in the clear: set tls in [mysql] to required or verify-identity"},
    {5013, ERR_LOST, DROP, "the connection broke"}, /* CR_ERR_NET_READ */
    {5014, ERR_LOST, DROP, "the connection broke"}, /* CR_ERR_NET_WRITE */
    {5015, ERR_LOST, DROP, "the connection broke"}, /* CR_ERR_NET_UNCOMPRESS */
    {6400, ERR_UNAVAILABLE, DROP, OFFLINE}, /* ER_SERVER_OFFLINE_MODE_REASON */
    {6401, ERR_UNAVAILABLE, DROP, OFFLINE}, /* ER_SERVER_OFFLINE_MODE_USER */
    /* ER_EXCEEDED_MAX_REGULAR_STATEMENT_HANDLE_LIMIT */
    {6411, ERR_UNAVAILABLE, KEEP,
     "the server has no prepared statement left: raise its max_prepared_stmt_count"},
    {6444, ERR_DENIED, SERVER_TEXT,
     "the server's firewall does not allow this account the statement"}, /* ER_ACCESS_DENIED_FIREWALL */
};
/* clang-format on */

/* Unexpected errors whose texts quote only names and settings. Ascending. */
static const unsigned names_only[] = {
    1005, 1006, 1007, 1008, 1016, 1017, 1025, 1032, 1033, 1034, 1035, 1036, 1050, 1051,
    1052, 1055, 1060, 1061, 1067, 1072, 1091, 1099, 1100, 1103, 1109, 1110, 1115, 1147,
    1166, 1193, 1194, 1195, 1214, 1228, 1229, 1231, 1232, 1235, 1238, 1273, 1286, 1290,
    1298, 1305, 1347, 1356, 1364, 1463, 1548, 1558, 1728, 1805, 1813, 1932,
};

/* Of the texts of server and libraries. A longer one has lost its end, perhaps with a quotation
 * mark. */
#define TEXT_SIZE 512
#define MARKS "'\""

static const struct fault *fault_find(unsigned number)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].number == number)
            return &faults[i];
    return NULL;
}

static bool quotes_names_only(unsigned number)
{
    for (size_t i = 0; i < sizeof names_only / sizeof *names_only; i++)
        if (names_only[i] == number)
            return true;
    return false;
}

/* The last quotation mark before end, or NULL. */
static const char *mark_before(const char *text, const char *end)
{
    while (end-- > text)
        if (strchr(MARKS, *end))
            return end;
    return NULL;
}

/* The end of the value that begins at `from`: the last quotation mark, because a mark within a
 * value looks like its end. If the text ends with a name ("for key 'x'", "for column 'x' at row
 * 1"), the mark before that. NULL if there is none. */
static const char *value_end(const char *from, const char *end)
{
    static const char *const before_name[] = {" for key ", " for column "};
    const char *last = mark_before(from + 1, end),
               *open = last ? mark_before(from + 1, last) : NULL;

    for (size_t i = 0; open && i < sizeof before_name / sizeof *before_name; i++) {
        const char *close = open - strlen(before_name[i]) - 1;
        if (close > from && strchr(MARKS, *close) &&
            !strncmp(close + 1, before_name[i], strlen(before_name[i])) &&
            (!last[1] || !strncmp(last + 1, " at row ", 8)))
            return close;
    }
    return last;
}

/* Copies the text without the values that it quotes. Names in backquotes stay. */
static void withhold_values(char out[TEXT_SIZE], const char *text)
{
    size_t len = strnlen(text, TEXT_SIZE);
    const char *from = strpbrk(text, MARKS), *end = NULL;

    if (!from) {
        snprintf(out, TEXT_SIZE, "%s", text);
        return;
    }
    if (len < TEXT_SIZE - 4)
        end = value_end(from, text + len);
    snprintf(out, TEXT_SIZE, "%.*s'...'%s", (int)(from - text), text, end ? end + 1 : "");
}

/* What a TLS handshake that failed (2026) says of the cause, by the first row that fits. SETTINGS:
 * files, certificates or versions, which stay as they are until somebody changes them. IF_CHECKED:
 * the same if the certificate is to be verified. If not, it is no cause: MariaDB's library speaks
 * of the certificate whenever a handshake fails after that has come. A text without a row, such as
 * "wrong version number" for an error that is sent in the clear, may pass. */
enum tls_cause { BROKE, SETTINGS, IF_CHECKED, MAY_PASS };
static const struct tls_fault {
    const char *says;
    enum tls_cause cause;
} tls_faults[] = {
    {"unexpected eof", BROKE},
    {"error:00000000", BROKE},
    {"alert bad certificate", SETTINGS}, /* alerts are what the server says of the client's */
    {"alert certificate", SETTINGS},
    {"alert unsupported certificate", SETTINGS},
    {"alert unknown ca", SETTINGS},
    {"alert access denied", SETTINGS},
    {"alert handshake failure", SETTINGS}, /* no cipher in common */
    {"alert protocol version", SETTINGS},
    {"alert insufficient security", SETTINGS},
    {"alert", MAY_PASS},
    {"Unable to get", SETTINGS},                   /* tls_cert and tls_key, Oracle's library */
    {"set_default_verify_paths failed", SETTINGS}, /* tls_ca */
    {"No such file", SETTINGS},
    {"Permission denied", SETTINGS},
    {"not found (Errcode", SETTINGS},
    {"no certificate or crl found", SETTINGS},
    {"no start line", SETTINGS},
    {"key values mismatch", SETTINGS},
    {"unsupported", SETTINGS},
    {"no protocols available", SETTINGS},
    {"no ciphers available", SETTINGS},
    {"certificate", IF_CHECKED},
    {"mismatch", IF_CHECKED},
    {"CRL", IF_CHECKED},
    {"too small", IF_CHECKED},
    {"too weak", IF_CHECKED},
};

static enum tls_cause tls_cause(const char *text, bool checked)
{
    static const int broken[] = {0,         EAGAIN,       EPIPE,       ECONNRESET, ECONNABORTED,
                                 ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ENETDOWN};
    const char *number = strrchr(text, '(');

    for (size_t i = 0; number && i < sizeof broken / sizeof *broken; i++)
        if (number[1] >= '0' && number[1] <= '9' && atoi(number + 1) == broken[i])
            return BROKE;
    for (size_t i = 0; i < sizeof tls_faults / sizeof *tls_faults; i++)
        if (strstr(text, tls_faults[i].says))
            return tls_faults[i].cause != IF_CHECKED ? tls_faults[i].cause
                   : checked                         ? SETTINGS
                                                     : BROKE;
    return MAY_PASS;
}

/* If TLS is wanted and the server sends an error instead of its greeting, such as 1040,
 * Connector/C 3.3 and later report an error of their own that quotes it: "...: 1040 - Too many
 * connections". Returns the server's number and sets its text, or returns `number`. */
static unsigned before_tls(unsigned number, const char **text)
{
    static const char prefix[] = "Received error packet before completion of TLS handshake.";
    const char *colon = strncmp(*text, prefix, strlen(prefix)) ? NULL : strchr(*text, ':');
    const char *dash = colon ? strstr(colon, " - ") : NULL;
    const unsigned theirs = dash ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;

    if (!theirs)
        return number;
    *text = dash + strlen(" - ");
    return theirs;
}

/* A table that is not dq's, nor a temporary one, is full: a trigger's, and it may have a limit of
 * its own. */
static bool other_is_full(unsigned number, const char *text)
{
    static const char before[] = "The table '";
    const char *name = text + strlen(before);

    return number == 1114 && !strncmp(text, before, strlen(before)) && !strchr("#(./\\", *name) &&
           strncmp(name, "dq_", 3) != 0;
}

/* The error that the text is about: 1290 names an option, read_only, which may pass, or another (0:
 * unknown); 1015 has the storage engine's reason, which in MySQL may be innodb_read_only. */
static unsigned meant(unsigned number, const char *text)
{
    if (number == 1290 && !strstr(text, "read"))
        return 0;
    return number == 1015 && strstr(text, "errno: 165 ") ? 1036 : number;
}

int db_error_set(struct err *err, unsigned number, const char *server_text, const char *at,
                 bool *ret_drop)
{
    static const struct fault full = {1114, ERR_CONFIG, SERVER_TEXT, "make room in it"};
    char shown[TEXT_SIZE];

    const struct fault *f = fault_find(meant(number, server_text));
    *ret_drop = f ? (f->flags & DROP) != 0 : false;
    if (other_is_full(number, server_text))
        f = &full;
    if (f ? f->flags & SERVER_TEXT : quotes_names_only(number))
        snprintf(shown, sizeof shown, "%s", server_text);
    else
        withhold_values(shown, server_text);
    if (!f)
        return err_set(err, ERR_FATAL, "%s: unexpected error %u: %s", at, number, shown);
    if (!(f->flags & (SERVER_TEXT | SERVER_VALUES)))
        return err_set(err, f->code, "%s: %s (error %u)", at, f->text, number);
    if (!f->text)
        return err_set(err, f->code, "%s: %s (error %u)", at, shown, number);
    return err_set(err, f->code, "%s: %s (error %u); %s", at, shown, number, f->text);
}

bool db_error_of_statement(unsigned number)
{
    return number >= 1000 && number < 5000 && number != 1105 /* ER_UNKNOWN_ERROR */ &&
           number != 1815 /* ER_INTERNAL_ERROR */;
}

int db_error_away(int code, struct err *err)
{
    if (code == ERR_DENIED || code == ERR_CONFIG || code == ERR_SYSTEM)
        return code;
    if (err)
        err->code = ERR_UNAVAILABLE;
    return ERR_UNAVAILABLE;
}

int db_error_connect(struct err *err, unsigned number, const char *text, const char *at,
                     bool checked)
{
    bool drop;

    number = before_tls(number, &text);
    const enum tls_cause cause = number == 2026 ? tls_cause(text, checked) : MAY_PASS;
    /* Connector/C, for a connection that breaks during caching_sha2_password without TLS */
    if (cause == BROKE || (number == 2061 && strstr(text, "read RSA public key")))
        number = 2013;
    int rc = db_error_set(err, number, text, at, &drop);
    if (rc == ERR_LOST)
        return rc;
    if (cause == SETTINGS && strstr(text, "expired"))
        return err_set(err, ERR_CONFIG, "%s: the certificate has expired: renew it (error %u)", at,
                       number);
    if (cause == SETTINGS)
        return err_set(err, ERR_CONFIG, "%s", err->text);
    return db_error_away(rc, err);
}
