# fish completion for cudabpf, which itself says what may stand at the cursor
function __cudabpf_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    command -q $program; or return
    set -l answer (command $program __complete $words[2..-1] "$current" 2>/dev/null)
    string match -qr '^(?<kind>\w+) (?<at>\d+)' -- $answer[1]; or return
    set -l before (string sub -l $at -- "$current")
    set -l rest (string sub -s (math $at + 1) -- "$current")
    set -l offered $answer[2..-1]
    switch $kind
        case command
            set offered (complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-1]) $current | string collect))
            set before ''
        case users
            set offered (__fish_complete_users)
        case folders
            set offered (__fish_complete_directories $rest '')
        case files traces
            set -l files (complete -C "'' $rest") # of no command: files
            set offered (test $kind = traces; and string match -r -- '^.*(?:/|\.jsonl|\.jsonl\.zst)$' $files)
            set -q offered[1]; or set offered $files
    end
    string join -- \n $before$offered
end
complete -c cudabpf -k -f -a '(__cudabpf_complete)'
