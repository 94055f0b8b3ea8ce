# median.awk - the median of a list of numbers with blanks between; low and high are its ends.
function median(list, n, sorted, i, j, v)
{
    n = split(list, sorted, " ")
    for (i = 2; i <= n; i++) {
        v = sorted[i] + 0
        for (j = i - 1; j > 0 && sorted[j] + 0 > v; j--)
            sorted[j + 1] = sorted[j]
        sorted[j + 1] = v
    }
    low = sorted[1] + 0
    high = sorted[n] + 0
    return n % 2 ? sorted[(n + 1) / 2] + 0 : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}
