# bash completion for cudabpf, which itself says what may stand at the cursor
_cudabpf() {
  local current=${COMP_WORDS[COMP_CWORD]} program=${1/#'~/'/"$HOME/"} kind at offered before offset word
  { read -r kind at _ && mapfile -t offered; } < <(
    command "$program" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  [[ $current != = ]] || current='' # readline makes three words of --option=value
  if [[ $kind == command ]]; then
    for offset in _comp_command_offset _command_offset; do # of the package bash-completion
      if declare -F "$offset" >/dev/null; then "$offset" "$at" && return; fi
    done
    if ((COMP_CWORD == at)); then kind=commands; else kind=files; fi
    at=0
  fi
  before=${current:0:at} current=${current:at} current=${current#[\'\"]} current=${current//\\/}
  mapfile -t COMPREPLY < <(case $kind in
    words)
      for word in "${offered[@]%%$'\t'*}"; do
        [[ $word != "$current"* ]] || printf '%q\n' "$word"
      done ;;
    traces)
      compgen -d -- "$current"
      compgen -f -X '!*.jsonl' -- "$current"
      compgen -f -X '!*.jsonl.zst' -- "$current" ;;
    folders) compgen -d -- "$current" ;;
    files | commands | users) compgen -A "${kind%s}" -- "$current" ;;
  esac)
  [[ $kind != traces || ${COMPREPLY[*]} ]] || mapfile -t COMPREPLY < <(compgen -f -- "$current")
  case $kind in files | folders | traces) compopt -o filenames 2>/dev/null ;; esac # which quotes them
  [[ ${COMPREPLY[0]} != */ ]] || compopt -o nospace 2>/dev/null
  COMPREPLY=("${COMPREPLY[@]/#/"$before"}")
}
complete -F _cudabpf cudabpf
