# Turns sql/NNNN_name.sql into the C table of store/schema/schema.h. Usage: awk -f embed.awk FILE...
# The numbers must be 1, 2, 3, ... in the order given, and each file must have a line `-- compat: N`: a mistake is refused here,
# not at a user's database. A file of tests is next_name.sql: its number is the next one. A file routines.sql becomes the text of
# store/schema/routines.h.

function fail(text)
{
    print "embed.awk: " FILENAME ": " text >"/dev/stderr"
    failed = 1
    exit 1
}

function end_file()
{
    if (!count)
        return
    if (!compat)
        fail("the line \"-- compat: N\" is missing in migration " count)
    print "     , " compat "},"
}

BEGIN {
    print "/* Made by sql/embed.awk from sql/: edit the files there. */"
    print "#include \"store/schema/routines.h\""
    print "#include \"store/schema/schema.h\"\n"
    print "const struct schema_migration schema_migrations[] = {"
}

function quoted(line)
{
    gsub(/[\\"?]/, "\\\\&", line)
    gsub(/\t/, "\\t", line)
    return "     \"" line "\\n\""
}

FILENAME ~ /(^|\/)routines\.sql$/ {
    routines = routines quoted($0) "\n"
    next
}

FNR == 1 {
    end_file()
    count++
    compat = 0
    name = FILENAME
    sub(/.*\//, "", name)
    if (name !~ /^([0-9][0-9][0-9][0-9]|next)_[a-z0-9_]+\.sql$/)
        fail("the name is not NNNN_name.sql")
    sub(/\.sql$/, "", name)
    if (name !~ /^next/ && substr(name, 1, 4) + 0 != count)
        fail("migration " count " is missing")
    print "    {" count ", \"" name "\","
}

/^-- compat: [0-9]+$/ {
    compat = $3
    if (compat < oldest || compat > count)
        fail("compat is " compat ", which is less than before, or greater than the number of the migration")
    oldest = compat
}

{ print quoted($0) }

END {
    if (failed)
        exit 1
    end_file()
    print "};\n"
    print "const int schema_latest = " count + 0 ";\n"
    print "const char routines_script[] =\n" routines "     ;"
}
