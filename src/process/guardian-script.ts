/** Environment variable that marks a process until its pid is known to the guardian. */
export const SPAWN_MARK = 'TRUNKLINE_SPAWN';

/**
 * The guardian on POSIX systems: a shell script, since a shell needs little memory and exists everywhere.
 *
 * It receives `+pgid` (a group was spawned), `-pgid` (a group has ended) and `?mark` (a spawn begins), first as arguments
 * and then one per line on stdin. If the gateway is killed during a spawn, the script finds the process by the mark in its
 * environment, on systems with /proc. The end of stdin means that the gateway has ended: every registered group gets
 * SIGTERM, and SIGKILL two seconds later if any of them is still alive. Incomplete lines are ignored, and so are the
 * numbers 0 and 1, which would signal the script's own group and every process. Signals are sent by `kill -s`, since
 * `kill -TERM -- -1234` silently does nothing in dash.
 */
export const POSIX_GUARDIAN = `
trap '' HUP INT QUIT TERM PIPE
groups=' '
spawning=
note() {
  case $1 in
    '?'*) spawning=\${1#?}; return ;;
    +*) spawning= ;;
  esac
  group=\${1#[+-]}
  case $group in '' | *[!0-9]* | 0* | 1) return ;; esac
  case $1 in
    +*) groups="$groups$group " ;;
    -*) case $groups in *" $group "*) groups="\${groups%% $group *} \${groups#* $group }" ;; esac ;;
  esac
}

# The first argument is the pid of the gateway, for people who list the processes.
shift
for line do note "$line"; done
while IFS= read -r line; do note "$line"; done

# A process that is being spawned may not have its mark yet.
tries=4
case $spawning in *[!0-9a-f-]*) spawning= ;; esac
while [ -n "$spawning" ] && [ "$tries" -gt 0 ]; do
  for file in $(grep -lsxz -- "${SPAWN_MARK}=$spawning" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}
    pid=\${pid%/environ}
    if kill -s 0 -- "-$pid" 2>/dev/null; then groups="$groups$pid "; spawning=; fi
  done 2>/dev/null
  tries=$((tries - 1))
  if [ -n "$spawning" ]; then sleep 0.1 2>/dev/null || tries=0; fi
done

signal() {
  for group in $groups; do kill -s "$1" -- "-$group"; done 2>/dev/null
}
is_anyone_left() {
  for group in $groups; do
    if kill -s 0 -- "-$group"; then return 0; fi
  done 2>/dev/null
  return 1
}

signal TERM
tenths=20
while [ "$tenths" -gt 0 ] && is_anyone_left; do
  if sleep 0.1 2>/dev/null; then tenths=$((tenths - 1)); else sleep 1; tenths=$((tenths - 10)); fi
done
signal KILL
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
