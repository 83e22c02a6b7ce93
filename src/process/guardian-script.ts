/** The variable by which a process is found whose number nobody could tell any more. */
export const SPAWN_MARK = 'TRUNKLINE_SPAWN';

/**
 * The helper on POSIX systems: a shell, since it needs little memory and is there everywhere.
 *
 * It is given `+pgid`, `-pgid` and `?mark`, as arguments to begin with and one a line afterwards. The last of these comes
 * before a group is spawned: should we be killed before we could tell its number, it is found by the mark in its
 * environment, where the system shows that in /proc. When nothing more can come, we are gone: every group that is still
 * registered gets SIGTERM, and SIGKILL two seconds later, or never if all are gone by then. A line that was cut off counts
 * for nothing, and neither do the numbers 0 and 1, which would mean our own group and everybody. Signals go by `kill -s`,
 * since `kill -TERM -- -1234` does nothing in dash, and says nothing.
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

# The first argument says whose it is.
shift
for line do note "$line"; done
while IFS= read -r line; do note "$line"; done

# What was being spawned may not carry its mark yet.
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
 * The helper on Windows, where a shell cannot do it: a second Node, which ends the process trees with `taskkill` at
 * once, as there is no other way to ask them to end than their stdin. Untested on Windows.
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
