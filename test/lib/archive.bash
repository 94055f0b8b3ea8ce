# archive LABEL END: prints the address of the archive of this host's apt that has the label or, if labels are unknown,
# whose address ends with END. Sourced.
archive()
{
    apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
        awk -v label="$1" -v end="$2" '$1 == label || $1 == "$(LABEL)" && $2 ~ end "/?$" { print $2; exit }'
}
