# What users read has one word for a thing, that of "Terms" in doc/lifecycle, and plain sentences: documents, comments
# in sql, samples in etc, and the texts in the sources.

load ../lib/lint
setup() { cd "$lint_top"; }

documents() { ls README NEWS HACKING SECURITY CONTRIBUTING doc/* test/bench/README etc/producers/README; }

# Each line of a document, and each string of a source, behind FILE:LINE:.
texts()
{
    grep -n '' $(documents) sql/* $(find etc -type f ! -path 'etc/producers/README' ! -path 'etc/debian/*')
    perl -ne 'while (/"((?:\\.|[^"\\])*)"/g) { print "$ARGV:$.: $1\n" if !/^ *#/ } close ARGV if eof' \
        $(find src bin -name '*.[ch]' ! -name migrations.c ! -name texts.c)
}

# expression of Perl, in any case | what to say instead
WORDS='
\b(next|each|every|full) looks?\b                                       | poll
\bladders?\b                                                            | retry list, wait
\b(how late the latest|the latest first|latest of (them|these))\b       | most overdue
\btasks? (is|are|was|were) returned\b|\breturns? (the|its|those) tasks? | give back
\btasks? (is|are|was|were) released\b|\breleases? (the|its|those) tasks? | give back
(?<!/)\bfleets?\b(?!/)                                                  | dqds
\bdue, created or moved\b                                               | due, added or moved
\b(anew|shall|tells)\b                                                  | again, must, reports
\bbrakes?\b                                                             | bottleneck
\bgo(es)? away\b                                                        | becomes unavailable
'

@test 'a thing has one name' {
    texts >"$BATS_TEST_TMPDIR/texts"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/texts")" -gt 8000 ]
    while IFS= read -r row; do
        [ -n "$row" ] || continue
        instead=${row##* | } word=$(sed 's/ *| [^|]*$//' <<<"$row")
        grep -iP -- "^[^:]*:[0-9]+:.*($word)" "$BATS_TEST_TMPDIR/texts" | sed "s/\$/   (say: $instead)/" || true
    done <<<"$WORDS" | none
}

# "What the server refuses is an error." A title and a question have no full stop.
@test 'no sentence has a clause with "what" as its subject' {
    for file in $(documents) $(find etc -type f ! -path 'etc/debian/*'); do
        perl -0777 -ne 's/^(\.\w\w? |# ?| +)//mg; s/\n(?=\S)/ /g;
            while (/(?:^|[.:;!?]\s+|\n)(What (?!to |happens )[^.?:;\n]*\.)/g) { print "$ARGV: $1\n" }' "$file"
    done | none
}

@test 'documents have at most 100 columns' {
    # a command that people copy, an item of a manual and a row of test/servers/run stay on one line
    awk 'length > 100 && !/^(\$ |\.It |.*\?  +dq |\* \* )/ && !(FILENAME == "doc/servers" && /^    (server|[Mm])/) &&
        !(FILENAME == "etc/producers/README" && /EXPECTED|order-1001/) { print FILENAME ":" FNR ": " length }' \
        $(documents) | none
}
