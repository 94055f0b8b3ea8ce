# awk -f failures.awk LOG... prints all that TAP logs say about each test that failed: what came before its line, since the test before, and what
# follows up to the next; of a log without a failed test, whose program broke, everything.
function print_failed()
{
    if (!failed)
        return
    printf "%s", section
    section = ""
    found = 1
}
function print_log()
{
    print_failed()
    if (!found)
        printf "%s", all
    failed = found = 0
    all = section = ""
}
FNR == 1 {
    if (NR > 1)
        print_log()
    printf "\n---- %s\n", FILENAME
}
/^(not )?ok / {
    print_failed()
    failed = /^not/
    if (!failed)
        section = ""
}
{ all = all $0 "\n" }
!failed && /^#/ { next } # of the test before
!/^(ok|PASS:) / { section = section $0 "\n" }
END { print_log() }
