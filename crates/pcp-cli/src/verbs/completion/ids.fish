
# Ids that the daemon has now, in place of files, where an id belongs.
function __pcp_cli_ids
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -g __pcp_cli_found (command $words[1] __complete -- $words[2..-1] "$word" 2>/dev/null)
    and set -q __pcp_cli_found[1]
end
complete -c pcp-cli -n __pcp_cli_ids -f -a '$__pcp_cli_found'
complete -c pcp-cli -n __pcp_cli_ids -l app -x -a '$__pcp_cli_found'
