# Turns etc/help into the table of src/cli/line/texts.h. Usage: awk -f help.awk etc/help
# A command has a line "= NAME: SUMMARY"; a line for each way to call it, which a line that begins with a blank continues; and,
# behind an empty line each, paragraphs, and examples, which are indented. A line {WORD} stands for the paragraphs of "= {WORD}".

function quoted(text)
{
    gsub(/[\\"?]/, "\\\\&", text)
    gsub(/\n/, "\\n", text)
    return "\"" text "\""
}

function join(list, text, between) { return list == "" ? text : list between text }

function end_paragraph()
{
    if (paragraph != "")
        details = join(details, paragraph, "\n")
    paragraph = ""
}

function end_command()
{
    end_paragraph()
    if (name ~ /^{/)
        shared[name] = details
    else if (name != "")
        print "    {" quoted(name) ", " quoted(summary) ", " quoted(usage) ",\n     " quoted(details) ",\n     " \
            quoted(examples) "},"
    usage = details = examples = summary = ""
}

BEGIN { print "static const struct texts_help helps[] = {" }

/^= / {
    end_command()
    name = substr($0, 3)
    colon = index(name, ": ")
    summary = colon ? substr(name, colon + 2) : ""
    name = colon ? substr(name, 1, colon - 1) : name
    in_usage = colon
    next
}

/^$/ { end_paragraph(); in_usage = 0; next }
in_usage { usage = sub(/^ +/, "") ? usage " " $0 : join(usage, $0, "\n"); next }
/^    / { examples = join(examples, substr($0, 5), "\n"); next }
$0 in shared { end_paragraph(); details = join(details, shared[$0], "\n"); next }
{ paragraph = join(paragraph, $0, " ") }

END {
    end_command()
    print "};\n"
    print "const struct texts_help *texts_help(const char *name)\n{"
    print "    const struct texts_help *help = helps;"
    print "    while (strcmp(help->name, name) != 0)\n        help++;"
    print "    return help;\n}"
}
