# Read by the bash that runs a command of shell_exec, before the command: puts up the state of before
# and sees to it that the state of after is written down.
# @SKIP@ are the names of variables that are not kept. @IN@, @TEXT@ and @OUT@ are descriptors: the state of before (shell text), the command, and where
# the state of after goes. The shell that waits outside this one holds @OUT@; this one and what it
# starts do not.
exec 2>&1
__lorimer_save() {
  {
    set +o
    printf '\0'
    set +eunv +o pipefail +o posix
    builtin pwd -P
    printf '\0'
    jobs -pr
    printf '\0'
    shopt -p
    printf 'umask %s\n' "$(umask)"
    unset -f __lorimer_save
    declare -f
    while IFS= read -r __lorimer_item; do
      [[ $__lorimer_item == 'declare -f '* ]] || printf '%s\n' "$__lorimer_item"
    done < <(declare -F)
    while IFS= read -r __lorimer_item; do
      case $__lorimer_item in
      BASH* | COMP_* | DIRSTACK | EPOCH* | EUID | FUNCNAME | GROUPS | HISTCMD | HOME | HOSTNAME) ;;
      HOSTTYPE | LINENO | MACHTYPE | OPTERR | OPTIND | OSTYPE | PIPESTATUS | PPID | PWD | RANDOM) ;;
      @SKIP@) ;;
      SECONDS | SHELLOPTS | SHLVL | SRANDOM | TMPDIR | UID | _ | __lorimer_*) ;;
      *) declare -p "$__lorimer_item" ;;
      esac
    done < <(compgen -v)
    printf '\0done'
  } 2>/dev/null >"/proc/$PPID/fd/@OUT@"
}
IFS= read -r -d '' __lorimer_text </dev/fd/@TEXT@ # before the state: it may hold `set -a`
trap __lorimer_save EXIT
. /dev/fd/@IN@
exec @IN@<&- @TEXT@<&-
