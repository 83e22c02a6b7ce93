import { FAMILY_PREFIX } from './family-prefix.js';

/**
 * The guardian on POSIX systems: a shell script, since a shell needs little memory and exists everywhere.
 *
 * It receives `+pgid` (a group was spawned) and `-pgid` (it has ended), `+f` and `-f` with a mark (a family begins, and has
 * ended), first as arguments and then one per line on stdin. The end of stdin means that the gateway has ended: every
 * registered group and every process that bears a registered mark gets SIGTERM, and SIGKILL two seconds later if any of
 * them is still alive. Incomplete lines are ignored, and so are the numbers 0 and 1, which would signal the script's own
 * group and every process. Signals are sent by `kill -s`, since `kill -TERM -- -1234` silently does nothing in dash.
 *
 * `platform` is as in `process.platform`.
 */
export function posixGuardian(platform: string): string {
  return `
trap '' HUP INT QUIT TERM PIPE
known=' '
note() {
  item=\${1#[+-]}
  case $item in '' | *[!0-9a-f]* | 0* | 1) return ;; esac
  case $1 in
    +*) known="$known$item " ;;
    -*) case $known in *" $item "*) known="\${known%% $item *} \${known#* $item }" ;; esac ;;
  esac
}

# The first argument is the pid of the gateway, for people who list the processes.
shift
for line do note "$line"; done
while IFS= read -r line; do note "$line"; done

groups=
marks=
for item in $known; do
  case $item in
    f*) marks="$marks -e ${FAMILY_PREFIX}\${item#f}=1" ;;
    *[!0-9]*) ;;
    *) groups="$groups $item" ;;
  esac
done
${platform === 'darwin' ? FIND_BY_PS : FIND_IN_PROC}
# Signals the processes with a mark; those of a process group get the signal of their group.
# SIGTERM is sent to each once. Fails if there is no process to signal. The start time tells a process from a later one with
# the same pid.
signal_families() {
  found=1
  if [ -z "$marks" ]; then return 1; fi
  for pid in $(list_candidates); do
    describe "$pid"
    case $state in '' | Z* | X*) continue ;; esac
    case "$groups " in *" $pgrp "*) continue ;; esac
    first_start=$start
    has_mark "$pid" || continue
    describe "$pid"
    if [ "$start" != "$first_start" ]; then continue; fi
    found=0
    case "$1$told" in TERM*" $pid/$start "*) continue ;; esac
    kill -s "$1" -- "$pid"
    told="$told$pid/$start "
  done 2>/dev/null
  return "$found"
}
told=' '
signal_groups() {
  for group in $groups; do kill -s "$1" -- "-$group"; done 2>/dev/null
}
is_group_left() {
  for group in $groups; do
    if kill -s 0 -- "-$group"; then return 0; fi
  done 2>/dev/null
  return 1
}
pause() {
  sleep 0.1 2>/dev/null || sleep 1
}

if [ -z "$groups$marks" ]; then exit 0; fi
# A process that is being spawned may not have its mark yet, so one search that finds nothing is not enough.
if [ -n "$marks" ]; then searches=4; else searches=1; fi
signal_groups TERM
sleep 2 &
timer=$!
searched=0
quiet=0
family_left=
while kill -s 0 "$timer" 2>/dev/null; do
  if is_group_left; then group_left=yes; else group_left=; fi
  # While only groups are left, there is nothing to search for.
  if [ "$searched" -lt "$searches" ] || [ -n "$family_left" ] || [ -z "$group_left" ]; then
    if signal_families TERM; then family_left=yes; else family_left=; fi
    searched=$((searched + 1))
  fi
  if [ -n "$group_left$family_left" ]; then quiet=0; else quiet=$((quiet + 1)); fi
  if [ "$quiet" -ge "$searches" ]; then
    kill -s KILL "$timer"
    exit 0
  fi
  pause
done
signal_groups KILL
# One search that finds nothing is enough if the last one found nothing either. Processes that are found may go on to start
# others, so the next search follows at once.
tries=100
while [ "$tries" -gt 0 ]; do
  if signal_families KILL; then
    family_left=yes
  elif [ -z "$family_left" ]; then
    exit 0
  else
    family_left=
    pause
  fi
  tries=$((tries - 1))
done
`;
}

/**
 * Finds the processes that bear a mark in /proc. `grep` reads every environment, and `has_mark` compares whole variables. The
 * grep of BusyBox can be built to stop at a null byte, as in Alpine; then every process is a candidate.
 */
const FIND_IN_PROC = `
if printf 'a\\0b\\n' | grep -q b; then can_grep=yes; else can_grep=; fi
list_candidates() {
  if [ -n "$can_grep" ]; then set -- $(grep -ls $marks /proc/[0-9]*/environ); else set -- /proc/[0-9]*/environ; fi
  for file do
    file=\${file#/proc/}
    echo "\${file%/environ}"
  done
}
has_mark() {
  tr '\\0' '\\n' <"/proc/$1/environ" | grep -qxF $marks
}
# Sets state, pgrp and start; they are empty if the process has ended. The name of the program may contain any character.
describe() {
  stat=
  while IFS= read -r line || [ -n "$line" ]; do stat="$stat$line "; done <"/proc/$1/stat"
  set -- \${stat##*) }
  state=$1
  pgrp=$3
  start=\${20}
}
`;

/** The same on macOS, where `ps` shows the environment behind the command line. Untested on macOS. */
const FIND_BY_PS = `
list_candidates() {
  ps -A -E -ww -o pid= -o command= | grep -F $marks | while read -r pid rest; do echo "$pid"; done
}
has_mark() {
  ps -E -ww -o command= -p "$1" | grep -qF $marks
}
describe() {
  set -- $(LC_ALL=C ps -o stat= -o pgid= -o lstart= -p "$1")
  state=$1
  pgrp=$2
  start="$3-$4-$5-$6-$7"
}
`;

/**
 * The guardian on Windows: a second Node process, which ends the process trees with `taskkill`. On Windows,
 * closing its stdin is the only way to request the end of a console program. Untested on Windows.
 */
export const WINDOWS_GUARDIAN = `
const pids = new Set();
for (const signal of ['SIGINT', 'SIGBREAK', 'SIGHUP', 'SIGTERM']) process.on(signal, () => {});
const note = (line) => {
  const [, sign, pid] = /^([+-])([1-9][0-9]*)$/.exec(line) ?? [];
  if (sign === '+') pids.add(pid);
  else pids.delete(pid);
};
process.argv.slice(3).forEach(note);
require('node:readline')
  .createInterface({ input: process.stdin })
  .on('line', note)
  .on('close', () => {
    const options = { stdio: 'ignore', windowsHide: true };
    for (const pid of pids) require('node:child_process').spawn('taskkill', ['/PID', pid, '/T', '/F'], options);
  });
`;
