import type { CodeTable } from './code-entry.js';

/** What can be wrong with the machine that Trunkline runs on. */
export const MACHINE_CODES = {
  'TL-NODE-OK': { level: 'ok', means: 'This Node runs Trunkline.', remedy: 'Nothing to do.' },
  'TL-NODE-OLD': {
    level: 'fail',
    means: 'This version of Node is too old for Trunkline.',
    remedy: 'Install Node 20.19 or newer, or 22.3 or newer, and register Trunkline again with it.',
  },
  'TL-NODE-VANISHING': {
    level: 'warn',
    means: 'This Node is in a folder that its version manager removes or renames.',
    remedy: 'Register Trunkline with a Node at a path that stays, such as the one of the system.',
  },
  'TL-NODE-ELECTRON': {
    level: 'warn',
    means: 'Trunkline runs on the Node inside of a desktop program, which has no npm.',
    remedy: 'Install Node, and register Trunkline with it. Servers with `package` need its npm.',
  },
  'TL-NPM-OK': { level: 'ok', means: 'Packages can be installed: npm is there.', remedy: 'Nothing to do.' },
  'TL-NPM-MISSING': {
    level: 'warn',
    means: 'No npm was found, so no package can be installed.',
    remedy: 'Install Node with npm. Packages that are installed already still run.',
  },
  'TL-NPM-UNREACHABLE': {
    level: 'warn',
    means: 'The registry of npm is not reached.',
    remedy: 'Check the network, the proxy and the setting `registry` of npm: `npm ping`.',
  },
  'TL-PATH-SHELL-ONLY': {
    level: 'fail',
    means: 'A command is found with the PATH of your shell, and not with the PATH of desktop programs.',
    remedy: 'Write its absolute path as `command`.',
  },
  'TL-DIR-OK': { level: 'ok', means: 'The folders of Trunkline can be used.', remedy: 'Nothing to do.' },
  'TL-DIR-UNWRITABLE': {
    level: 'fail',
    means: 'Trunkline cannot write into one of its folders.',
    remedy: 'Make the folder writable for you, or free the path if a file is there.',
  },
  'TL-DIR-FOREIGN': {
    level: 'fail',
    means: 'A folder of Trunkline belongs to another user.',
    remedy: 'Make it yours with `chown -R`. Commands run with `sudo` leave such folders behind.',
  },
  'TL-DIR-EXPOSED': {
    level: 'warn',
    means: 'Every user of this machine can write into a folder of Trunkline, and so decide what runs as you.',
    remedy: 'Take the right away: `chmod go-w FOLDER`.',
  },
  'TL-DISK-LOW': {
    level: 'warn',
    means: 'The disk of the package store has less than 500 MB left.',
    remedy: 'Free some space before packages are installed or updated.',
  },
  'TL-HOME-NETWORK': {
    level: 'warn',
    means: 'The data folder is on a network file system, where locks and sockets are not reliable.',
    remedy: 'Name a folder on a local disk in XDG_DATA_HOME, and in TRUNKLINE_HUB_DIR for the hub.',
  },
  'TL-HOME-SYNCED': {
    level: 'warn',
    means: 'The data folder is in a folder that OneDrive copies to its servers.',
    remedy: 'Take the folder out of the backup of OneDrive.',
  },
  'TL-LIMIT-FILES': {
    level: 'warn',
    means: 'The limit of open files is low for this number of servers.',
    remedy: 'Raise it: `ulimit -n` in a shell, or the limits of your desktop session.',
  },
  'TL-LIMIT-PROCESSES': {
    level: 'warn',
    means: 'The limit of processes is low for this number of servers.',
    remedy: 'Raise it: `ulimit -u` in a shell, or the limits of your desktop session.',
  },
  'TL-LIMIT-WATCHES': {
    level: 'warn',
    means: 'The system allows few watched files, so that changes of the configuration may not be seen.',
    remedy: 'Raise it: `sudo sysctl fs.inotify.max_user_watches=524288`.',
  },
  'TL-PROXY-LOCALHOST': {
    level: 'warn',
    means:
      'A proxy is set, and NO_PROXY does not exempt this machine, so servers may ask the proxy for local addresses.',
    remedy: 'Add `localhost,127.0.0.1,::1` to NO_PROXY.',
  },
  'TL-PROXY-MALFORMED': {
    level: 'warn',
    means: 'A proxy variable is not a URL.',
    remedy: 'Write it with its scheme, such as `http://proxy.example:8080`.',
  },
  'TL-CERT-MISSING': {
    level: 'fail',
    means: 'A variable names a file with certificates that does not exist or cannot be read.',
    remedy: 'Correct the variable, or remove it.',
  },
  'TL-WSL-MIXED': {
    level: 'warn',
    means: 'A command crosses the border between Windows and WSL.',
    remedy: 'Run client, Trunkline and servers on one side. Paths and signals do not cross the border.',
  },
  'TL-DOCTOR-TIMEOUT': {
    level: 'warn',
    means: 'A check did not end in time.',
    remedy: 'Run `trunkline doctor` again when the machine is less busy.',
  },
  'TL-DOCTOR-FAILED': {
    level: 'warn',
    means: 'A check itself failed, so it says nothing.',
    remedy: 'Report it with the output of `trunkline doctor --json`.',
  },
} as const satisfies CodeTable;
