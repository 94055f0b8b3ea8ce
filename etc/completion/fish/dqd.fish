# Completion of dqd for fish: the options and levels that its help has, and tags and files as dq completes them.

function __dqd_words
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    set -l dqd $before[1]
    set -l dq (string replace -r 'dqd$' dq -- $dqd)
    switch "$before[-1] $last"
        case '--tag *' '--config *' '* --tag=*' '* --config=*'
            for word in ($dq completion --line -- list $before[2..-1] "$last" 2>/dev/null)
                if string match -q ':files*' -- $word
                    __fish_complete_path $last
                else
                    echo $word
                end
            end
        case '--log-level *'
            string split , -- ($dqd --help 2>/dev/null |
                string replace -rf '^ *--log-level LEVEL *([^;]*);.*' '$1' | string replace -ra ', | or ' ,)
        case '--for *' '--slots *'
        case '*'
            $dqd --help 2>/dev/null | string replace -rf '^ *(--[a-z-]+)( [A-Z]+)? +' '$1'\t
    end
end
complete -c dqd -f -a '(__dqd_words)'
