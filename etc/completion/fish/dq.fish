# Completion of dq for fish; dq itself knows the words.

function __dq_words
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    for word in ($before[1] completion --line -- $before[2..-1] "$last" 2>/dev/null)
        if string match -q ':files*' -- $word
            __fish_complete_path $last
        else
            echo $word
        end
    end
end
complete -c dq -f -a '(__dq_words)'
