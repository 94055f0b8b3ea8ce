# Prints the examples of a document, each behind a line "@ DOCUMENT: its first line": of a manual in mdoc(7) the literal
# displays, lines of .Dl, and commands in the text; of a plain text the paragraphs that are indented by four columns.

function begin(line) { print "@ " FILENAME ": " line; print line }

function plain(line)
{
    gsub(/\\\(dq/, "\"", line)
    gsub(/\\\(aq/, "'", line)
    gsub(/\\e/, "\\", line)
    gsub(/\\&/, "", line)
    gsub(/\\-/, "-", line)
    return line
}

FNR == 1 { display = fresh = 0; mdoc = /^\.Dd/ }

mdoc && /^\.Bd -literal/ { display = fresh = 1; next }
mdoc && /^\.Ed/ { display = 0; next }
mdoc && display { if (fresh) begin(plain($0)); else print plain($0); fresh = 0; next }
mdoc && /^\.Dl / { sub(/^\.Dl /, ""); begin(plain($0)); next }
# a command with arguments that stands in a sentence
mdoc && match($0, /^\.(Li|Ql) (dqd?|usermod|setsid) [^,]*[a-z|"-]/) {
    line = plain(substr($0, 5, RLENGTH - 4))
    sub(/ \.$/, "", line)
    begin(line)
    next
}
mdoc { next }

# plain text, by paragraphs: one that is not indented, or is an item of a list, holds no example
/^ *$/ { paragraph = 0; next }
!paragraph { paragraph = /^    / && !/^ *(-|[0-9]+\.) / ? 1 : 2; fresh = paragraph == 1 }
paragraph == 1 {
    sub(/^    (    )?/, "")
    if (fresh) begin($0); else print
    fresh = 0
}
