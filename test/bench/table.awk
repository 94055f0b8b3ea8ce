# table.awk - medians and ratios: targets.tbl, then results.tsv. before=WHO: all targets are to be as good as that one.

function show(v) { return v >= 1000 ? sprintf("%.0f", v) : v >= 100 ? sprintf("%.1f", v) : sprintf("%.2f", v) }

function reference(row,    r)
{
    r = against[row]
    if (r == "-")
        return 0
    return r ~ /^[0-9.]+$/ ? r + 0 : middle[row, r]
}

function verdict(row, v,    r)
{
    r = reference(row)
    if (!r)
        return ""
    if (factor[row] ~ /^\+/)
        return sprintf("%+6.2f   <= %-5s %s", v - r, factor[row], v <= r + factor[row] ? "reached" : "MISSED")
    ok = better[row] == "more" ? v >= r * factor[row] : v <= r * factor[row]
    return sprintf("%6.2f   %s %-5s %s", v / r, better[row] == "more" ? ">=" : "<=",
        factor[row] (r == against[row] + 0 ? " x " r : ""), ok ? "reached" : "MISSED")
}

NR == FNR {
    if ($0 !~ /^#/ && NF == 6) {
        order[++rows] = $1
        title[$1] = $2
        unit[$1] = $3
        better[$1] = $4
        against[$1] = $5
        factor[$1] = $6
        if (before != "") {
            against[$1] = before
            factor[$1] = $4 == "more" ? 0.97 : 1.03
        }
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
        printf "%s  %s [%s]\n", row, title[row], unit[row]
        for (k = 1; k <= count[row]; k++)
            middle[row, who[row, k]] = median(values[row, who[row, k]])
        for (k = 1; k <= count[row]; k++) {
            w = who[row, k]
            m = median(values[row, w])
            printf "    %-6s %-44s %10s   (%s to %s) %s\n", kind[row, w], w, show(m), show(low), show(high),
                kind[row, w] ~ /^(dq|now)$/ ? verdict(row, m) : ""
        }
    }
}
