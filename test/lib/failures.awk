# awk -f failures.awk LOG... prints the part of TAP logs about each failed test: from the end of the test before it
# to the start of the next. It prints the whole log if no test failed, because then the program crashed.
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
