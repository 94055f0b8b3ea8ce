# worker.sh - a process that stays, see dq-handlers(5): keep: 2, run: [/bin/sh, /srv/worker.sh]. Needs jq; for bodies that are text. Replace work.
work() { printf '%s\n' "$2"; }    # TAG BODY

echo '{"ready":true}' >&3
while IFS= read -r line; do
    id=${line#*\"id\":} id=${id%%[!0-9]*}    # jq rounds what is above 2^53
    tag=$(printf %s "$line" | jq -r .tag)
    body=$(printf %s "$line" | jq -r '.body // (.body_base64 | @base64d)')
    if work "$tag" "$body" </dev/null; then result=done; else result=retry; fi
    printf '{"id":%s,"result":"%s"}\n' "$id" "$result" >&3
done
