# worker.sh - a process that stays, see dq-handlers(5): keep: 2, run: [/bin/sh, /srv/worker.sh]. Needs jq; for bodies that are text. Replace work.
work() { printf '%s\n' "$2"; }    # TAG BODY

jq --version >/dev/null || exit 127
echo '{"ready":true}' >&3
while IFS= read -r line; do
    id=${line#*\"id\":} id=${id%%[!0-9]*} result=retry    # jq rounds what is above 2^53
    tag=$(printf %s "$line" | jq -r .tag) &&
        body=$(printf %s "$line" | jq -r '.body // error("the body is not text")') &&
        work "$tag" "$body" </dev/null && result=done
    printf '{"id":%s,"result":"%s"}\n' "$id" "$result" >&3
done
