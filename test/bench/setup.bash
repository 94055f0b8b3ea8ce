# setup.bash - what run and peers begin with: places, packages, the build. The caller has set `here`.
top=$(readlink -f -- "$here/../..")
work=$(realpath -m -- "${DQ_BENCH_DIR:-$top/build/bench}")
src=$work/src obj=$work/obj bin=$work/obj/bin tool=$work/obj/test/bench sandbox=$work/sandbox results=$work/results.tsv
against=''
PATH=$PATH:/usr/local/sbin:/usr/sbin

. "$top/test/lib/wait.bash"
wait_limit=1200 wait_pause=0.1
. "$here/lib.bash"

usage() { echo "${0##*/}: $*" >&2; exit 64; }

build()
{
    mkdir -p "$obj"
    "$top/test/lib/copy-sources" "$src" && cd "$obj" &&
        { [ config.status -nt "$src/configure" ] || "$src/configure" CFLAGS=-O2; } &&
        make -j"$(nproc)" bin/dq bin/dqd test/bench/{answer,beanstalk,kept,late,naive,raw,redis,schedule,stamp,starts}
}

# build_static: dq with the client library and OpenSSL in it, as $static/bin/dq.
static=$work/static
build_static()
{
    mkdir -p "$static"
    (cd "$static" &&
        { [ config.status -nt "$src/configure" ] || "$src/configure" CFLAGS=-O2 --enable-static-client; } &&
        make -j"$(nproc)" bin/dq) >"$work/static.log" 2>&1 </dev/null || { tail -n 30 "$work/static.log"; exit 1; }
}

# prepare [PACKAGE...]: installs what is needed, these as well, and builds.
prepare()
{
    mkdir -p "$work"
    "$top/bin/need-packages" gcc libc6-dev make autoconf automake pkg-config libmariadb-dev libinih-dev \
        libyaml-dev libjansson-dev libhiredis-dev mariadb-server-core/mariadbd \
        mariadb-client-core/mariadb procps/ps beanstalkd redis-server "$@"
    say building
    (build) >"$work/build.log" 2>&1 </dev/null || {
        tail -n 30 "$work/build.log"
        say "the build failed: $work/build.log"
        exit 1
    }
}
