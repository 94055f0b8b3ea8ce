# Helpers for bats tests of commands that draw a screen: `load ../lib/screen` after the sandbox. They run in tmux.
#
#   screen_start COLUMNS ROWS COMMAND   runs COMMAND in a terminal of that size, in place of an earlier one
#   screen_resize COLUMNS ROWS
#   screen_end          ends it; belongs into teardown
#   screen              prints what it shows
#   shows PATTERN       it shows what an extended regular expression matches; hides PATTERN: it does not
#   sees PATTERN        waits until it does
#   keys KEY...         types them, as tmux names them: Enter, C-c

terminal() { tmux -f /dev/null -S "$TMUX_SOCKET" "$@" 3>&-; }

screen_end() { [ -z "${TMUX_SOCKET:-}" ] || terminal kill-server 2>/dev/null || true; }

screen_start()
{
    screen_end
    TMUX_SOCKET=$(mktemp -u "$BATS_TEST_TMPDIR/tmux.XXXX") # the server that was ended may still be there
    terminal new-session -d -x "$1" -y "$2" "$3"
}

screen_resize() { terminal resize-window -x "$1" -y "$2"; }
screen() { terminal capture-pane -p; }
shows() { screen | grep -qE -- "$1"; }
hides() { ! shows "$1"; }
sees() { wait_until shows "$1"; }
keys() { terminal send-keys "$@"; }
