# Ids that the daemon has now; the verbs and options where none belongs.
_pcp-cli() {
    local ids
    ids=$(command "${words[1]}" __complete -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null) || ids=
    if [[ -n $ids ]]; then
        compadd -- "${(@f)ids}"
        return
    fi
    _pcp-cli__words "$@"
}
