import { type ChildProcess, spawn } from 'node:child_process';
import { HAS_GROUPS } from '../../host/process/processes.js';
import type { RunProcess } from '../../host/process/run-file.js';
import { LISTING, LISTING_MS, parseListing, systemProgram } from '../../host/process/windows.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { AS_NODE, FAMILY_PREFIX } from './environment.js';
import { growTree } from './process-trees.js';

export interface GuardianProgram {
  readonly command: string;
  readonly args: readonly string[];
  /** Whether it gets the time with each group, as in `+pgid@time`. */
  readonly isTimed?: true;
}

interface GuardianOptions {
  readonly clock: Clock;
  /** Called when the guardian process cannot be started or has ended; once for a series of failures. */
  readonly onTrouble: (trouble: string) => void;
  readonly program?: GuardianProgram;
}

/** Delay before a restart of the guardian process; doubles with each failure in a row. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 60_000;
/** A guardian process that ran this long ends the series of failures. */
const STABLE_AFTER_MS = 10_000;
/** Longest wait of `close` for a guardian process that has nothing left to do. */
const FAREWELL_MS = 300;

/**
 * Starts the guardian process, and registers the process groups and the marks of their families with it. So no process
 * outlives the gateway, even if the gateway is killed. The guardian process has its own session. It reads a pipe from the
 * gateway, and ends all registered groups and families when the pipe closes.
 *
 * It starts before the first group and is restarted when it ends. No method but `close` waits for it, and none throws.
 */
export class Guardian {
  readonly #options: GuardianOptions;
  readonly #program: GuardianProgram;
  /** The lines about groups, marks and processes that the guardian process must know, by name. */
  readonly #known = new Map<string, string>();
  #process: ChildProcess | undefined;
  #startedAt = 0;
  #troubles = 0;
  #cancelStart: Cancel | undefined;
  #isClosed = false;

  constructor(options: GuardianOptions) {
    this.#options = options;
    this.#program = options.program ?? guardianProgram(process.platform);
  }

  /** The pid of the guardian process while it runs. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /**
   * Must be called right before a process with this mark in its environment is spawned, because the guardian process finds it by
   * the mark if the gateway is killed before `add`.
   */
  addFamily(mark: string): void {
    this.#add(`f${mark}`);
  }

  /** Must be called when no process with this mark is left, or when they may outlive the gateway. */
  removeFamily(mark: string): void {
    this.#remove(`f${mark}`);
  }

  /** Must be called as soon as the group exists. */
  add(pgid: number): void {
    this.#add(String(pgid), this.#program.isTimed ? `${pgid}@${Date.now()}` : undefined);
  }

  /** Must be called when the group has ended, because the system can reuse its id from then on. */
  remove(pgid: number): void {
    this.#remove(String(pgid));
  }

  /** Registers a process that may bear no mark. Does nothing on Windows, where the guardian process lists the processes itself. */
  addProcess({ pid, startTime }: RunProcess): void {
    if (!this.#program.isTimed) this.#add(`p${pid}/${startTime}`);
  }

  removeProcess({ pid, startTime }: RunProcess): void {
    this.#remove(`p${pid}/${startTime}`);
  }

  #add(name: string, line = name): void {
    this.#known.set(name, `+${line}`);
    this.#tell(`+${line}\n`);
    this.#ensure();
  }

  #remove(name: string): void {
    this.#known.delete(name);
    this.#tell(`-${name}\n`);
  }

  /** Ends the guardian process, which first ends all registered groups and families. Resolves within 300 ms. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelStart?.();
    const guardian = this.#process;
    if (guardian === undefined) return;
    guardian.stdin?.end();
    // A guardian process that still ends processes must not delay the exit of the gateway.
    if (this.#known.size > 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.schedule(FAREWELL_MS, resolve);
      guardian.once('exit', () => {
        cancel();
        resolve();
      });
    });
  }

  /** Starts the guardian process at once, because a group that it does not know is lost when the gateway is killed. */
  #ensure(): void {
    if (this.#process === undefined && this.#cancelStart === undefined && !this.#isClosed) this.#start();
  }

  #tell(line: string): void {
    const { stdin } = this.#process ?? {};
    if (stdin?.writable) stdin.write(line);
  }

  #start(): void {
    this.#startedAt = this.#options.clock.now();
    let guardian: ChildProcess;
    try {
      guardian = this.#spawn();
    } catch (error) {
      this.#recover(String(error));
      return;
    }
    this.#process = guardian;
    const ended = (reason: string) => {
      if (this.#process === guardian) this.#recover(reason);
    };
    guardian.on('error', (error) => ended(error.message));
    guardian.once('exit', (code, signal) => ended(signal ?? `exit code ${code}`));
    // Without free descriptors there are no streams, only an `error` event. A broken pipe is ignored, because `exit` follows.
    guardian.stdin?.on('error', () => {});
    guardian.unref();
  }

  #spawn(): ChildProcess {
    const { command, args } = this.#program;
    // Passes the known lines as arguments, because the pipe would lose them if the gateway were killed right after this spawn.
    return spawn(command, [...args, ...this.#known.values()], {
      // PATH is for `sleep`; Windows needs its whole environment to find programs, and this process may be Electron.
      env: HAS_GROUPS ? { PATH: `${process.env.PATH ?? ''}:/usr/bin:/bin` } : { ...process.env, ...AS_NODE },
      cwd: '/',
      // The guardian process inherits nothing but the pipe.
      stdio: ['pipe', 'ignore', 'ignore'],
      // A session of its own: Ctrl-C and signals to the gateway's group do not reach it.
      detached: true,
      windowsHide: true,
    });
  }

  #recover(reason: string): void {
    this.#process = undefined;
    if (this.#isClosed) return;
    if (this.#options.clock.now() - this.#startedAt >= STABLE_AFTER_MS) this.#troubles = 0;
    if (this.#troubles === 0) this.#options.onTrouble(reason);
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#troubles, LONGEST_PAUSE_MS);
    this.#troubles += 1;
    this.#cancelStart = this.#options.clock.schedule(pauseMs, () => {
      this.#cancelStart = undefined;
      if (this.#known.size > 0) this.#start();
    });
  }
}

/** The program for a platform, as in `process.platform`. Groups and marks are added after its last argument, the pid. */
export function guardianProgram(platform: string): GuardianProgram {
  const owner = ['trunkline-guardian', String(process.pid)];
  if (platform === 'win32')
    return { command: process.execPath, args: ['-e', windowsGuardian(), ...owner], isTimed: true };
  const shell = platform === 'android' ? '/system/bin/sh' : '/bin/sh';
  return { command: shell, args: ['-c', posixGuardian(platform), ...owner] };
}

/**
 * The guardian on POSIX systems: a shell script, since a shell needs little memory and exists everywhere.
 *
 * It receives `+pgid` (a group was spawned) and `-pgid` (it has ended), `+f` and `-f` with a mark (a family begins, and has ended), `+p`
 * and `-p` with a pid, a slash and a start time (a process, which may bear no mark), first as arguments and then one per line on stdin. At
 * the end of stdin, the gateway has ended: every registered group and process, and every process that bears a registered mark, gets
 * SIGTERM, and SIGKILL two seconds later if any of them is still alive. Incomplete lines are ignored, and so are 0 and 1, which would
 * signal the script's own group and every process. It uses `kill -s`, because `kill -TERM -- -1234` does nothing in dash.
 *
 * `platform` is as in `process.platform`.
 */
function posixGuardian(platform: string): string {
  return `
trap '' HUP INT QUIT TERM PIPE
known=' '
note() {
  item=\${1#[+-]}
  case $item in '' | *[!0-9A-Za-z:/-]* | 0* | 1) return ;; esac
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
others=
for item in $known; do
  case $item in
    f*) marks="$marks -e ${FAMILY_PREFIX}\${item#f}=1" ;;
    p*/*) others="$others \${item#p} " ;;
    *[!0-9]*) ;;
    *) groups="$groups $item" ;;
  esac
done
${platform === 'darwin' ? FIND_BY_PS : FIND_IN_PROC}
# Signals the processes with a mark and the others; those of a process group get the signal of their group.
# SIGTERM is sent to each once. Fails if there is no process to signal. The start time tells a process from a later one with
# the same pid.
signal_families() {
  found=1
  if [ -z "$marks$others" ]; then return 1; fi
  for pid in $(if [ -n "$marks" ]; then list_candidates; fi) $(for other in $others; do echo "\${other%%/*}"; done); do
    describe "$pid"
    case $state in '' | Z* | X*) continue ;; esac
    case "$groups " in *" $pgrp "*) continue ;; esac
    first_start=$start
    case "$others" in *" $pid/$start "*) ;; *) [ -n "$marks" ] && has_mark "$pid" || continue ;; esac
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

if [ -z "$groups$marks$others" ]; then exit 0; fi
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
# Ends after two searches in a row that find nothing. The last search of the loop above counts. After a search that finds
# processes, the next one follows at once, because these may start others.
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

/** The same with `ps`, which prints the environment after the command line on macOS. */
const FIND_BY_PS = `
list_candidates() {
  ps -A -E -ww -o pid= -o command= | grep -F $marks | while read -r pid rest; do echo "$pid"; done
}
has_mark() {
  ps -E -ww -o command= -p "$1" | tr ' ' '\\n' | grep -qxF $marks
}
describe() {
  set -- $(LC_ALL=C TZ=UTC0 ps -o stat= -o pgid= -o lstart= -p "$1")
  state=$1
  pgrp=$2
  start="$3-$4-$5-$6-$7"
}
`;

/**
 * The guardian on Windows: a second Node process, which follows the trees of processes below the leaders. It lists the processes while
 * they live, first soon after each start and then less often, because the system ends the leader with the gateway, and then a program
 * behind `cmd.exe` has no parent. A leader comes as `+pid@time`, with the time in milliseconds since 1970. Windows has no signal that
 * asks a console program to end, so all are ended at once. If the processes cannot be listed, `taskkill` ends what still has its leader.
 */
const windowsGuardian = () => `
const { spawn } = require('node:child_process');
const parseListing = ${parseListing};
const growTree = ${growTree};
const listing = ${JSON.stringify({ ...LISTING, timeout: LISTING_MS })};
const pauses = ${JSON.stringify(LOOK_AFTER_MS)};
for (const signal of ['SIGINT', 'SIGBREAK', 'SIGHUP', 'SIGTERM']) process.on(signal, () => {});
const trees = new Map();
let looks = 0;
let timer;
const list = () => new Promise((resolve) => {
  let text = '';
  const child = spawn(listing.command, listing.args, { stdio: ['ignore', 'pipe', 'ignore'], windowsHide: true });
  // Uses a timer, because the option of spawn keeps this process alive even if the program does not exist.
  setTimeout(() => child.kill(), listing.timeout).unref();
  child.on('error', () => resolve(undefined));
  child.stdout?.setEncoding('utf8').on('data', (part) => (text += part));
  child.on('close', (code) => resolve(code === 0 ? parseListing(text) : undefined));
});
const look = async () => {
  const processes = await list();
  const now = Date.now();
  return [...trees.values()].map((tree) => (processes === undefined ? undefined : growTree(tree, processes, now)));
};
const plan = () => {
  clearTimeout(timer);
  timer = setTimeout(() => look().then(plan), pauses[Math.min(looks++, pauses.length - 1)]);
  timer.unref();
};
const note = (line) => {
  const [, sign, pid, time] = /^([+-])([1-9][0-9]*)(?:@([0-9]+))?$/.exec(line) ?? [];
  if (sign === '-') trees.delete(pid);
  if (sign !== '+') return;
  trees.set(pid, [{ pid: Number(pid), seenAtMs: Number(time ?? Date.now()) }]);
  looks = 0;
  plan();
};
const end = async () => {
  clearTimeout(timer);
  for (let round = 0; round < 5 && trees.size > 0; round += 1) {
    const found = await look();
    if (found.includes(undefined)) {
      for (const pid of trees.keys()) spawn(${JSON.stringify(systemProgram('taskkill'))}, ['/PID', pid, '/T', '/F'], { stdio: 'ignore', windowsHide: true }).on('error', () => {});
      return;
    }
    const pids = found.flat().map(({ pid }) => pid);
    if (pids.length === 0) return;
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {}
    }
  }
};
process.argv.slice(3).forEach(note);
let rest = '';
process.stdin.setEncoding('utf8').on('error', () => {}).on('close', end).on('data', (text) => {
  // A line that is cut off by a kill could name another process.
  const lines = (rest + text).split('\\n');
  rest = lines.pop();
  lines.forEach(note);
});
`;

/** Pauses before the processes are listed, in milliseconds, from the last start of a server. */
export const LOOK_AFTER_MS = [2_000, 10_000, 60_000, 300_000];
