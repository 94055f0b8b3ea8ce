/*
 * words.c - see words.h. Whatever is not known to be harmless needs a shell.
 */
#include "base/words.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const char plain[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%=";

/* Between double quotes, a backslash stands for itself but before these. */
static const char escaped[] = "$`\"\\";

/* Reads the rest of a part between quotes. NULL: it needs a shell, or has no end. */
static const char *take_quoted(const char *s, char quote, char **to)
{
    for (; *s != quote; s++) {
        if (!*s || (quote == '"' && (*s == '$' || *s == '`')))
            return NULL;
        if (quote == '"' && *s == '\\' && s[1] && strchr(escaped, s[1]))
            s++;
        else if (quote == '"' && *s == '\\' && s[1] == '\n')
            return NULL;
        *(*to)++ = *s;
    }
    return s + 1;
}

static const char *take_word(const char *s, char **to)
{
    while (s && *s && *s != ' ' && *s != '\t') {
        if (*s == '\'' || *s == '"')
            s = take_quoted(s + 1, *s, to);
        else if (*s == '\\' && s[1] && s[1] != '\n')
            *(*to)++ = s[1], s += 2;
        else if (strchr(plain, *s) || (unsigned char)*s >= 0x80)
            *(*to)++ = *s++;
        else
            return NULL;
    }
    *(*to)++ = '\0';
    return s;
}

bool words_split(const char *line, char ***ret)
{
    static const char blank[] = " \t";
    size_t len = strlen(line), most = len / 2 + 1, count = 0;
    /* a word takes no more bytes than in the line, where a blank follows it or the line ends */
    char **words = mem_zero(1, (most + 1) * sizeof *words + len + 1);
    char *to = (char *)(words + most + 1);
    const char *s = line + strspn(line, blank);

    while (s && *s) {
        words[count++] = to;
        s = take_word(s, &to);
        s = s ? s + strspn(s, blank) : NULL;
    }
    if (!s) {
        free(words);
        return false;
    }
    *ret = words;
    return true;
}

bool words_is_built_in(const char *word)
{
    static const char all[] =
        " . : [ alias bg bind break builtin caller case cd command compgen complete continue coproc"
        " declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg"
        " fi for function getopts hash help history if in jobs kill let local logout mapfile popd"
        " printf pushd pwd read readarray readonly return select set shift shopt source suspend"
        " test then time times trap true type typeset ulimit umask unalias unset until wait while ";
    size_t len = strlen(word);

    for (const char *at = all; len && (at = strstr(at, word)); at++)
        if (at > all && at[-1] == ' ' && at[len] == ' ')
            return true;
    return !len;
}
