#compdef cudabpf
# zsh completion for cudabpf, which itself says what may stand at the cursor
_cudabpf() {
  local kind at what
  local -a offered ending
  offered=("${(@f)$(command ${(Q)~words[1]} __complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  read -r kind at what <<<"$offered[1]"
  shift offered
  if [[ $kind == command ]]; then
    shift $at words
    (( CURRENT -= at ))
    _normal
    return
  fi
  compset -p ${at:-0}
  case $kind in
    users) _users ;;
    files) _files ;;
    folders) _files -/ ;;
    traces) _files -g '*.jsonl(|.zst)' ;; # and all files if there are none
    words)
      (( $#offered )) || { _message -e "$what"; return 1 }
      [[ $offered[1] != */ ]] || ending=(-S '')
      offered=("${(@)${(@)${(@)offered//\\/\\\\}//:/\\:}/$'\t'/:}")
      _describe -V "$what" offered "$ending[@]" ;;
  esac
}
if [[ $funcstack[1] == _cudabpf ]]; then
  _cudabpf "$@" # loaded by its name, from a folder in $fpath
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _cudabpf cudabpf
fi
