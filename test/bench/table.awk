# table.awk - medians and ratios: targets.tbl, then results.tsv. before=WHO: all targets are to be as good as that one.

function show(v) { return v >= 1000 ? sprintf("%.0f", v) : v >= 100 ? sprintf("%.1f", v) : sprintf("%.2f", v) }

function reference(i, row,    r)
{
    r = against[i]
    if (r == "-")
        return 0
    return r ~ /^[0-9.]+$/ ? r + 0 : middle[row, r]
}

function verdict(i, row, v,    r)
{
    r = reference(i, row)
    if (!r)
        return ""
    if (factor[i] ~ /^\+/)
        return sprintf("%+6.2f   <= %-5s %s", v - r, factor[i], v <= r + factor[i] ? "reached" : "MISSED")
    ok = better[i] == "more" ? v >= r * factor[i] : v <= r * factor[i]
    return sprintf("%6.2f   %s %-5s %s", v / r, better[i] == "more" ? ">=" : "<=",
        factor[i] (r == against[i] + 0 ? " x " r : ""), ok ? "reached" : "MISSED")
}

NR == FNR {
    if ($0 !~ /^#/ && NF == 6) {
        order[++rows] = $1
        title[rows] = $2
        unit[rows] = $3
        better[rows] = $4
        against[rows] = before != "" ? before : $5
        factor[rows] = before == "" ? $6 : $4 == "more" ? 0.97 : 1.03
    }
    next
}

{
    if (!(($1, $3) in values))
        who[$1, ++count[$1]] = $3
    values[$1, $3] = values[$1, $3] " " $4
    kind[$1, $3] = $2
}

END {
    for (i = 1; i <= rows; i++) {
        row = order[i]
        if (!count[row])
            continue
        printf "%s  %s [%s]\n", row, title[i], unit[i]
        for (k = 1; k <= count[row]; k++)
            middle[row, who[row, k]] = median(values[row, who[row, k]])
        for (k = 1; k <= count[row]; k++) {
            w = who[row, k]
            m = median(values[row, w])
            printf "    %-6s %-44s %10s   (%s to %s) %s\n", kind[row, w], w, show(m), show(low), show(high),
                kind[row, w] ~ /^(dq|now)$/ ? verdict(i, row, m) : ""
        }
    }
}
