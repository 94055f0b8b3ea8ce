# peers.awk - the comparison of README from results.tsv: medians. names: who, in this order.

# To two digits, as the noise allows no more.
function round(v,    unit)
{
    unit = 1
    while (v / unit >= 100)
        unit *= 10
    return int(v / unit + 0.5) * unit
}

function rate(v) { v = round(v); return v >= 1000 ? sprintf("%d,%03d", v / 1000, v % 1000) : v }
function ms(v) { return v >= 10 ? round(v) : sprintf("%.1f", v) }
function of(row) { return median(values[row, who]) }

{ values[$1, $3] = values[$1, $3] " " $4 }

END {
    title["naive"] = "polling loop, a row a statement"
    title["graphile-worker"] = "graphile-worker, PostgreSQL"
    title["pg-boss"] = "pg-boss, PostgreSQL"
    title["bullmq"] = "BullMQ, Redis"
    title["celery"] = "Celery, Redis"
    title["laravel"] = "Laravel queue, MariaDB"
    title["delayed_job"] = "delayed_job, MariaDB"
    n = split(names, list, " ")
    if (stay) {
        print "                                   tasks per second, two workers in Node"
        print "                                   do nothing    compute for 1 ms"
    } else if (later) {
        printf "                                   tasks per second, in batches\n"
        printf "                                   alone   beside %d tasks of a later day\n", later
    } else {
        print "                                   tasks per second       lateness, ms     one add from"
        print "                                   process    batches     p50      p99     a shell, ms"
    }
    for (i = 1; i <= n; i++) {
        who = list[i]
        if (stay) {
            printf "    %-31s %9s %18s\n", (who in title) ? title[who] : who, rate(of("stay-0")), rate(of("stay-1"))
            if (who == "dq")
                printf "    %-31s %9s %18s\n", "dq, a process each", rate(of("each-0")), rate(of("each-1"))
            continue
        }
        if (later) {
            printf "    %-31s %6s %6s  %4.2f\n", (who in title) ? title[who] : who, rate(of("batches")),
                rate(of("later")), of("later") / of("batches")
            continue
        }
        printf "    %-31s %6s %10s %7s %8s %10s\n", (who in title) ? title[who] : who, rate(of("process")),
            rate(of("batches")), ms(of("late-p50")), ms(of("late-p99")), ms(of("add"))
    }
}
