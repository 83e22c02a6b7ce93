import { isWithin, type Policy, SYSTEM_FILES, SYSTEM_FOLDERS } from './policy.js';

/** The folders of the system by path: the target if it is a link, true if it is a folder. A missing one is absent. */
export type SystemFolders = Readonly<Record<string, string | true>>;

/** The facts about the machine that the command needs besides the policy. */
export interface Surroundings {
  readonly system: SystemFolders;
  readonly isFolder: (path: string) => boolean;
  /** The files of `HIDDEN_FILES` that this machine has. */
  readonly hidden: readonly string[];
}

/** Files of `/proc` that tell about the machine and not about the processes of the server: keys, timers, the kernel. */
export const HIDDEN_FILES: readonly string[] = [
  ...['keys', 'key-users', 'timer_list', 'sched_debug', 'latency_stats', 'kcore', 'kallsyms', 'modules'],
  'sysrq-trigger',
].map((name) => `/proc/${name}`);

interface Confined extends ConfinedProgram {
  readonly cwd: string;
  readonly filterDescriptor: number;
  /** Descriptor from which bubblewrap reads its other arguments, because `/proc/1/cmdline` shows those of its command line. */
  readonly argumentsDescriptor: number;
}

export interface ConfinedProgram {
  readonly policy: Policy;
  /** The program and its arguments. */
  readonly words: readonly string[];
  /** Folder that takes the files that are written outside of all openings. Without it, none can be written there. */
  readonly scratch?: string | undefined;
  /** Whether it has the network of the machine, with all its addresses. */
  readonly sharesNetwork?: boolean | undefined;
}

/** Command line of bubblewrap, and the rest of its arguments. */
interface BubblewrapCommand {
  readonly args: string[];
  /** The text for `argumentsDescriptor`. */
  readonly input: string;
}

/**
 * The command of bubblewrap for a confined program. The root of its file system is empty and read-only; folders of the
 * system and the openings of the policy are mounted into it. Everything else does not exist there, not even as a name.
 *
 * Capabilities are dropped even for root. `/proc` is read-only because root may write to files in `/proc/sys` without any
 * capability, and because a process could change the memory of bubblewrap, which runs beside it without the filter.
 */
export function bubblewrapCommand(confined: Confined, { system, isFolder, hidden }: Surroundings): BubblewrapCommand {
  const { policy, cwd, filterDescriptor, argumentsDescriptor, words, scratch, sharesNetwork = false } = confined;
  const emptied = policy.closed.filter(isFolder);
  const settings = [
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...(sharesNetwork ? [] : ['--unshare-net']),
    ...['--cap-drop', 'ALL'],
    ...(scratch === undefined ? [] : ['--bind', scratch, '/']),
    ...SYSTEM_FOLDERS.flatMap((path) => systemFolder(path, system[path])),
    ...[...SYSTEM_FILES, ...(sharesNetwork ? ['/etc/resolv.conf'] : [])].flatMap((path) => [
      '--ro-bind-try',
      path,
      path,
    ]),
    ...['--proc', '/proc', ...hidden.flatMap((path) => ['--ro-bind', '/dev/null', path])],
    ...['--dev', '/dev', '--tmpfs', '/dev/shm', '--tmpfs', '/tmp', '--tmpfs', '/var/tmp'],
    ...mountsOf(policy, emptied),
    ...['--dir', cwd],
    ...[...(scratch === undefined ? ['/'] : []), '/proc', '/dev', ...emptied].flatMap((path) => ['--remount-ro', path]),
    ...['--chdir', cwd],
    ...['--seccomp', String(filterDescriptor)],
  ];
  return { args: ['--args', String(argumentsDescriptor), '--', ...words], input: `${settings.join('\0')}\0` };
}

function systemFolder(path: string, found: string | true | undefined): string[] {
  if (found === undefined) return [];
  return found === true ? ['--ro-bind', path, path] : ['--symlink', found, path];
}

/** The home folder, the openings and the closed paths within them; each folder before what is in it. */
function mountsOf({ openings, closed, home, ownHome }: Policy, emptied: readonly string[]): string[] {
  const mounts = [
    { path: homeOf({ openings, home, ownHome }), words: ['--bind', ownHome] },
    ...openings.map(({ path, access, source = path }) => {
      return { path, words: [access === 'write' ? '--bind' : '--ro-bind', source] };
    }),
    ...closed.map((path) => ({ path, words: emptied.includes(path) ? ['--tmpfs'] : ['--ro-bind', '/dev/null'] })),
  ];
  const sorted = mounts.toSorted((one, other) => one.path.split('/').length - other.path.split('/').length);
  return sorted.flatMap(({ path, words }) => [...words, path]);
}

/** The path at which the server has its home folder: that of the user, unless the entry opens the user's own. */
export function homeOf({
  openings,
  home,
  ownHome,
}: {
  readonly openings: Policy['openings'];
  readonly home: string;
  readonly ownHome: string;
}): string {
  return home === '/' || openings.some(({ path }) => isWithin(home, path)) ? ownHome : home;
}
