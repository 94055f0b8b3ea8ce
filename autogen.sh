#!/bin/sh
# Makes ./configure in a checkout. Needs autoconf, automake and pkg-config.
set -eu
cd "$(dirname "$0")"
for tool in autoreconf automake pkg-config; do
    command -v "$tool" >/dev/null || {
        echo "autogen.sh: $tool is missing. On Debian: apt-get install autoconf automake pkg-config" >&2
        exit 1
    }
done
exec autoreconf --install --warnings=all
