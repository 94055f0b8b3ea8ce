# Turns etc/help into the tables of src/cli/line/texts.h. Usage: awk -f help.awk etc/help
# A command has a line "= NAME: SUMMARY"; a line for each way to call it, which a line that begins with blanks continues; and,
# behind an empty line each, paragraphs, examples, which are indented, and its options, "--NAME: TEXT". A line {WORD} stands for
# the paragraphs and options of "= {WORD}". "== GROUP" is the heading in dq help of the commands behind it.

function quoted(text)
{
    gsub(/[\\"?]/, "\\\\&", text)
    gsub(/\n/, "\\n", text)
    return "\"" text "\""
}

function join(list, text, between) { return list == "" ? text : list between text }

function end_part()
{
    if (option != "")
        options = options "    " quoted(option) ", " quoted(part) ",\n"
    else if (part != "")
        details = join(details, part, "\n")
    part = option = ""
}

function end_command()
{
    end_part()
    if (name ~ /^[{]/) {
        shared_details[name] = details
        shared_options[name] = options
    } else if (name != "") {
        print "static const char *const options_" ++count "[] = {\n" options "    NULL};"
        table = table "    {" quoted(name) ", " quoted(group) ", " quoted(summary) ", " quoted(usage) ",\n     " \
            quoted(details) ",\n     " quoted(examples) ", options_" count "},\n"
    }
    usage = details = examples = options = summary = ""
}

/^== / { end_command(); name = ""; group = substr($0, 4); next }

/^= / {
    end_command()
    name = substr($0, 3)
    colon = index(name, ": ")
    summary = colon ? substr(name, colon + 2) : ""
    name = colon ? substr(name, 1, colon - 1) : name
    in_usage = colon
    next
}

/^$/ { end_part(); in_usage = 0; next }
in_usage { usage = sub(/^ +/, "") ? usage " " $0 : join(usage, $0, "\n"); next }
/^    / { examples = join(examples, substr($0, 5), "\n"); next }

$0 in shared_options {
    end_part()
    details = join(details, shared_details[$0], shared_details[$0] == "" ? "" : "\n")
    options = options shared_options[$0]
    next
}

/^--[a-z-]+: / {
    end_part()
    option = substr($1, 3, length($1) - 3)
    part = substr($0, length($1) + 2)
    next
}

{ sub(/^ +/, ""); part = join(part, $0, " ") }

END {
    end_command()
    print "static const struct texts_help helps[] = {\n" table "};\n"
    print "const struct texts_help *texts_help(const char *name)\n{"
    print "    const struct texts_help *help = helps;"
    print "    while (strcmp(help->name, name) != 0)\n        help++;"
    print "    return help;\n}\n"
    print "const char *texts_option(const char *command, const char *name)\n{"
    print "    const char *const *option = texts_help(command)->options;"
    print "    while (*option && strcmp(*option, name) != 0)\n        option += 2;"
    print "    return *option ? option[1] : \"\";\n}"
}
