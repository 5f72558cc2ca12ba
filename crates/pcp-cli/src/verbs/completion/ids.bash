# Ids that the daemon has now; the verbs and options where none belongs.
_pcp__cli() {
    local ids
    ids=$("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || ids=
    if [[ -n ${ids} ]]; then
        mapfile -t COMPREPLY <<<"${ids}"
        return 0
    fi
    _pcp__cli__words "$@"
}
