import type { SpawnRequest } from './spawn-child.js';

/** Variable of the script, not exported, with the path of `setsid`. */
const SETSID_VARIABLE = 'trunkline_setsid';

/** For so many processes at once, named pipes are made and removed: to run `mkfifo` costs more than what it does. */
const BATCH = 16;

/**
 * The helper that starts processes in the gateway's place: a shell script, because a shell is small.
 *
 * A request on stdin is an id, the lowest id of a process that is not up yet, a number of lines, and commands of so many
 * lines. Ids count up from 1. Named pipes for each id are in the folder of the argument: `ID.in`, `ID.out` and `ID.err`. For
 * each request, one shell runs the commands in a session of their own, and waits for their end. On stdout the helper tells
 * `made`, `pid`, `up` and `exit`, each with the id. `up` means that the process has opened all three pipes; the gateway
 * then removes `ID.pid`. If the gateway ends before that, the process would wait for the gateway's ends of the pipes; it is
 * killed.
 */
export const POSIX_SPAWN_HELPER = `
trap '' HUP INT QUIT TERM PIPE
${SETSID_VARIABLE}=$(command -v setsid) && command -v mkfifo >/dev/null || exit 1
root=$1
made=0
removed=0
# Removes the pipes of processes that are up, and makes those of the next ones.
make_pipes() {
  set --
  while [ "$removed" -lt "$((lowest - 1))" ]; do
    removed=$((removed + 1))
    set -- "$@" "$root/$removed.in" "$root/$removed.out" "$root/$removed.err"
  done
  if [ "$#" -gt 0 ]; then rm -f "$@"; fi
  set --
  last=$made
  while [ "$last" -lt "$((id + ${BATCH - 1}))" ]; do
    last=$((last + 1))
    set -- "$@" "$root/$last.in" "$root/$last.out" "$root/$last.err"
  done
  if mkfifo -m 600 "$@"; then
    made=$last
  else
    rm -f "$@"
    return 1
  fi
}
while IFS= read -r id && IFS= read -r lowest && IFS= read -r count; do
  text=
  while [ "$count" -gt 0 ] && IFS= read -r line; do
    text="$text$line
"
    count=$((count - 1))
  done
  [ "$count" -eq 0 ] || break
  if [ "$id" -gt "$made" ] && ! make_pipes 2>/dev/null; then
    echo "exit $id 126"
    continue
  fi
  echo "made $id"
  (
    (
      trap - HUP INT QUIT TERM PIPE
      exec 3>&1 <"$root/$id.in" >"$root/$id.out" 2>"$root/$id.err"
      echo "up $id" >&3
      exec 3>&-
      eval "$text"
    ) &
    echo "$!" >"$root/$id.pid"
    echo "pid $id $!"
    wait "$!"
    echo "exit $id $?"
  ) 2>/dev/null </dev/null &
done
for file in "$root"/*.pid; do
  if [ -f "$file" ]; then kill -s KILL "$(cat "$file")"; fi
done 2>/dev/null
rm -rf "$root" 2>/dev/null
`;

/** What a shell may call a variable. Some others are constants of some shells. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const CONSTANTS = new Set(['UID', 'EUID', 'PPID', 'SHELLOPTS', 'BASHOPTS', 'BASH_VERSINFO', SETSID_VARIABLE]);

/**
 * The request as commands of a shell, with every text quoted. The environment is exported, not passed to `env`, because
 * every user of the machine can read arguments. `undefined` if a shell cannot start the process in this way.
 */
export function toShellCommand({ command, args, cwd, env, controlGroup }: SpawnRequest): string | undefined {
  const names = Object.keys(env);
  const texts = [command, ...args, cwd, ...Object.values(env)];
  if (texts.some((text) => text.includes('\0'))) return undefined;
  if (names.some((name) => !NAME.test(name) || CONSTANTS.has(name))) return undefined;
  // The shell itself enters the group, so that the process is born there. If it may not, it is looked at again later.
  const enter = controlGroup === undefined ? [] : [`{ echo 0 >${quote(`${controlGroup}/cgroup.procs`)}; } 2>/dev/null`];
  return [
    ...enter,
    `cd ${quote(cwd)} || exit 126`,
    'unset PATH',
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`),
    `exec "$${SETSID_VARIABLE}" ${[command, ...args].map(quote).join(' ')}`,
  ].join('\n');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
