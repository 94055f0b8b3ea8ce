# What the lints share: `load ../lib/lint`. LINT_TOP: another tree to look at, for trying the rules on a tree that
# breaks them.
#
#   none                prints what a rule found (standard input), and fails if it found something

DQ_TOP=${DQ_TOP:-$BATS_TEST_DIRNAME/../..}
DQ_BIN=${DQ_BIN:-$DQ_TOP/bin}
lint_top=${LINT_TOP:-$DQ_TOP}

none()
{
    tee "$BATS_TEST_TMPDIR/findings"
    [ ! -s "$BATS_TEST_TMPDIR/findings" ]
}
