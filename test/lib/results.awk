# awk -f results.awk TRS... prints what the tests of each file of results came to: "PASSED FAILED SKIPPED FILE".
# The driver reports an error besides if the program of a failed test ends with a status. That is no second failed test;
# without a failed test, it is the failure of the program.
/^:test-result: / { count[FILENAME, $2]++ }
END {
    for (i = 1; i < ARGC; i++) {
        file = ARGV[i]
        failed = count[file, "FAIL"] + count[file, "XPASS"]
        if (!failed)
            failed = (file, "ERROR") in count
        print count[file, "PASS"] + count[file, "XFAIL"], failed, count[file, "SKIP"] + 0, file
    }
}
