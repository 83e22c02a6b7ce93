import type { CodeTable } from './code-entry.js';

/** What can be wrong with a server that is started. */
export const SERVER_CODES = {
  'TL-SERVER-OK': { level: 'ok', means: 'The server starts and lists its tools.', remedy: 'Nothing to do.' },
  'TL-SERVER-MISCONFIGURED': {
    level: 'fail',
    means: 'The entry of the server in the configuration is wrong, so it cannot run.',
    remedy: 'Correct the line that is named.',
  },
  'TL-SERVER-INSTALLING': {
    level: 'warn',
    means: 'The package of the server is being installed.',
    remedy: 'Wait a minute, then try again.',
  },
  'TL-SERVER-NOT-INSTALLED': {
    level: 'fail',
    means: 'The package of the server could not be installed.',
    remedy: 'Read the output of npm, fix the cause, then run `trunkline install`.',
  },
  'TL-SERVER-STARTING': {
    level: 'warn',
    means: 'The server is still starting.',
    remedy: 'Try again in a moment.',
  },
  'TL-SERVER-RESTARTING': {
    level: 'fail',
    means: 'The server ended unexpectedly and is being restarted.',
    remedy: 'Try again in a moment. If it keeps failing, its log says why.',
  },
  'TL-SERVER-PARKED': {
    level: 'fail',
    means: 'The server failed too often in a row, so it is restarted rarely.',
    remedy: 'Fix the cause that its log names, then restart it: `trunkline restart SERVER`.',
  },
  'TL-SERVER-STOPPED': {
    level: 'warn',
    means: 'The server is stopped.',
    remedy: 'Restart it: `trunkline restart SERVER`.',
  },
  'TL-SERVER-UNRESPONSIVE': {
    level: 'fail',
    means: 'The server has stopped answering.',
    remedy: 'Wait: Trunkline probes it, and restarts it if it stays silent.',
  },
  'TL-SERVER-BREAKER-OPEN': {
    level: 'fail',
    means: 'Too many recent calls of the server failed, so calls to it are refused for a while.',
    remedy: 'Wait, or restart it: `trunkline restart SERVER`.',
  },
  'TL-SERVER-RESOURCES': {
    level: 'fail',
    means: 'The machine lacks what a new process needs, such as open files or memory.',
    remedy: 'Close other programs, or raise the limit that the evidence names.',
  },
  'TL-SERVER-SPAWN': {
    level: 'fail',
    means: 'The process of the server could not be started.',
    remedy: 'Correct `command`, or make the program executable.',
  },
  'TL-SERVER-EXITED': {
    level: 'fail',
    means: 'The server ended before it was ready.',
    remedy: 'Its output says why; often an argument, a variable in `env` or a file is missing.',
  },
  'TL-SERVER-SILENT': {
    level: 'fail',
    means: 'The server did not answer the handshake in time.',
    remedy: 'Check that it is an MCP server for stdio. If it needs more time, raise `startTimeout`.',
  },
  'TL-SERVER-HANDSHAKE': {
    level: 'fail',
    means: 'The server answered the handshake with something that is not MCP.',
    remedy: 'Install a newer version of the server.',
  },
  'TL-SERVER-LISTS': {
    level: 'fail',
    means: 'The server runs, but does not list its tools.',
    remedy: 'Read its log; often the network or a service that it needs is missing.',
  },
  'TL-SERVER-UNAUTHORIZED': {
    level: 'fail',
    means: 'The output of the server says that its key or token is missing or wrong.',
    remedy: 'Set the key in `env` of the server.',
  },
  'TL-SERVER-MODULE': {
    level: 'fail',
    means: 'The server lacks a module that it needs.',
    remedy:
      'If the module is the file in `args`, correct its path. Otherwise install the server again: `trunkline install`, `npm ci` in its folder, or pip for Python.',
  },
  'TL-SERVER-OLD-RUNTIME': {
    level: 'fail',
    means: 'The server needs another version of Node than the one that runs it.',
    remedy: 'Run it with a newer Node: write its absolute path as `command`.',
  },
  'TL-SERVER-FILE': {
    level: 'fail',
    means: 'The server does not find a file or folder that it needs, or may not use it.',
    remedy: 'Correct the path in `args` or `env`, and the rights of the file.',
  },
  'TL-SERVER-PORT': {
    level: 'fail',
    means: 'The server needs a port that another program uses.',
    remedy: 'End the other program, which is often the same server run by a client, or choose another port.',
  },
  'TL-SERVER-NETWORK': {
    level: 'fail',
    means: 'The server does not reach a host that it needs.',
    remedy: 'Check the network and the service. Behind a proxy, set HTTPS_PROXY.',
  },
  'TL-SERVER-CERTIFICATE': {
    level: 'fail',
    means: 'The server does not trust the certificate of a host.',
    remedy: 'Set NODE_EXTRA_CA_CERTS (for Python, SSL_CERT_FILE) to the file with your certificates.',
  },
  'TL-SERVER-NATIVE': {
    level: 'fail',
    means: 'A part of the server that is built for one system or one Node does not load.',
    remedy: 'Set `installScripts: true` for its package, or install it with the Node that runs it.',
  },
  'TL-SERVER-STDOUT': {
    level: 'warn',
    means: 'The server writes text to stdout that is no MCP message. Trunkline drops it; other clients may fail.',
    remedy: 'Turn its banner or its log on stdout off, if it has a setting for that.',
  },
  'TL-SERVER-QUARANTINED': {
    level: 'warn',
    means: 'Entries of the server are not listed, because they are malformed or their names are taken.',
    remedy: 'Read the reasons in the evidence. If a name is taken, deny the entry at one of the two servers.',
  },
  'TL-SERVER-HIDDEN-TEXT': {
    level: 'warn',
    means: 'Descriptions of tools have invisible characters, which a model reads and you do not.',
    remedy: 'Do not use the server before you know why: `trunkline approve SERVER` shows them.',
  },
  'TL-SERVER-TRUNCATED': {
    level: 'warn',
    means: 'The list of the server is too large, so that a part of it is missing.',
    remedy: 'Deny tools of the server, or ask its author for shorter lists.',
  },
  'TL-SERVER-LONG-TEXT': {
    level: 'warn',
    means: 'Descriptions of tools are longer than 2 KB, after which some clients cut them.',
    remedy: 'Nothing to do, unless a model misuses these tools.',
  },
  'TL-SERVER-APPROVAL': {
    level: 'warn',
    means: 'Tools of the server wait for your approval, and are not offered.',
    remedy: 'Review them: `trunkline approve SERVER`.',
  },
  'TL-SERVER-LIST-MISSING': {
    level: 'warn',
    means: 'The server announces prompts or resources, and its list of them cannot be read.',
    remedy: 'Report it to the authors of the server. Its tools work all the same.',
  },
  'TL-SERVER-PING': {
    level: 'warn',
    means: 'The server does not answer `ping`, which MCP requires of it. A client that asks so may give it up.',
    remedy: 'Report it to the authors of the server. Trunkline asks for its tools, too, before it restarts it.',
  },
  'TL-SERVER-LEFTOVERS': {
    level: 'warn',
    means: 'The server left processes behind when it ended, outside of its process group. Trunkline ended them.',
    remedy: 'Nothing has to be done. If they are to go on, set `leaveRunning: true`.',
  },
  'TL-SERVER-LINGERS': {
    level: 'warn',
    means: 'The server ended neither when its stdin was closed nor at SIGTERM, so it was killed.',
    remedy: 'Nothing to do, unless it loses data that way; then tell its author.',
  },
} as const satisfies CodeTable;
