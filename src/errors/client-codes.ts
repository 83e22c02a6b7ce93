import type { CodeTable } from './code-entry.js';
import { REFUSED_NAME_CODES } from './refused-name-codes.js';

/** What can be wrong between the clients and Trunkline, and with its own processes and files. */
export const CLIENT_CODES = {
  'TL-CLIENT-OK': { level: 'ok', means: 'A client has Trunkline registered.', remedy: 'Nothing to do.' },
  'TL-CLIENT-NONE': {
    level: 'warn',
    means: 'No client has Trunkline registered.',
    remedy: 'Register it: `trunkline connect CLIENT`. `trunkline connect` alone lists the clients.',
  },
  'TL-CLIENT-FILE': {
    level: 'fail',
    means: 'The file in which a client keeps its servers cannot be read.',
    remedy: 'Correct the file. The client itself usually ignores all servers in such a file.',
  },
  'TL-CLIENT-COMMAND': {
    level: 'fail',
    means: 'A client is told to run a program or a file that does not exist.',
    remedy: 'Register Trunkline again: `trunkline connect CLIENT`.',
  },
  'TL-CLIENT-RELATIVE': {
    level: 'warn',
    means: 'A client is told to run a program by its name, which depends on the PATH that the client has.',
    remedy: 'Register Trunkline again, with absolute paths: `trunkline connect CLIENT`.',
  },
  'TL-CLIENT-CONFIG': {
    level: 'fail',
    means: 'A client passes a configuration file that does not exist.',
    remedy: 'Correct the path after `--config` in the file of the client.',
  },
  'TL-CLIENT-VERSION': {
    level: 'warn',
    means: 'A client runs another copy of Trunkline than this one.',
    remedy: 'Register this one: `trunkline connect CLIENT`. All clients should run the same version.',
  },
  'TL-CLIENT-TWICE': {
    level: 'warn',
    means: 'A client has Trunkline registered twice, so it shows each tool twice.',
    remedy: 'Remove one of the two entries.',
  },
  'TL-CLIENT-DISABLED': {
    level: 'warn',
    means: 'Trunkline is registered in a client, and disabled there.',
    remedy: 'Enable it in the client.',
  },
  'TL-CLIENT-DUPLICATE': {
    level: 'warn',
    means: 'A client runs a server itself that Trunkline runs for it too, so it shows its tools twice.',
    remedy: 'Remove the server from the file of the client.',
  },
  'TL-CLIENT-GATEWAY': {
    level: 'warn',
    means:
      'A client that uses Trunkline runs another gateway, too. A server of both runs twice, and its tools are shown twice.',
    remedy:
      'Take the servers of the other gateway over with `trunkline import --from FILE`, and remove the other gateway.',
  },
  'TL-GATEWAY-SAME-SERVERS': {
    level: 'warn',
    means:
      'Another gateway runs servers that Trunkline runs, too: they take twice the memory, and may lock each other out.',
    remedy: 'Take its servers over with `trunkline import --from FILE`, and end the other gateway.',
  },
  'TL-GATEWAY-OTHER': {
    level: 'ok',
    means: 'Another gateway runs, and none of its processes is a server of Trunkline.',
    remedy: 'Nothing to do.',
  },
  'TL-CLIENT-UNREACHED': {
    level: 'fail',
    means: 'A client is told to use Trunkline at an address where nothing listens.',
    remedy: 'Start `trunkline serve --http PORT`, or correct the address.',
  },
  'TL-CLIENT-FOREIGN': {
    level: 'fail',
    means: 'A client is told to use Trunkline at an address where another program answers.',
    remedy: 'Start `trunkline serve --http` on another port, and correct the address in the client.',
  },
  'TL-CLIENT-TOKEN': {
    level: 'fail',
    means: 'A client uses Trunkline over HTTP with a wrong token, or without one.',
    remedy: 'Give the client the header `Authorization: Bearer TOKEN`. `trunkline token` prints the token.',
  },
  'TL-CLIENT-CLEARTEXT': {
    level: 'warn',
    means:
      'A client uses Trunkline on another machine without TLS, so that the network can read the token and all data.',
    remedy: 'Start `trunkline serve --http` with `--tls-cert` and `--tls-key`, and use an `https` address.',
  },
  'TL-CLIENT-PENDING': {
    level: 'warn',
    means: 'Claude Code has not asked yet whether to use Trunkline from the file of this project, and does not run it.',
    remedy: 'Start `claude` in the folder of the project, and approve the server.',
  },
  'TL-CLIENT-MSIX': {
    level: 'warn',
    means: 'Claude Desktop from the Windows store does not read the file in which Trunkline is registered.',
    remedy: 'Register Trunkline in the file inside of its package folder.',
  },
  'TL-CLIENT-DENIED': {
    level: 'fail',
    means: 'The settings of a client, or those of its administrator, forbid Trunkline or its tools.',
    remedy: 'Change the setting in the named file. Managed settings belong to the administrator of the machine.',
  },
  'TL-CLIENT-LOG': {
    level: 'warn',
    means: 'The log of a client shows a failure of Trunkline.',
    remedy: 'Read the evidence. If it is older than your last change, restart the client.',
  },
  'TL-START-OK': { level: 'ok', means: 'Trunkline starts as the client starts it.', remedy: 'Nothing to do.' },
  'TL-START-FAILED': {
    level: 'fail',
    means: 'Trunkline does not start as the client starts it.',
    remedy: 'Read the evidence, and register Trunkline again.',
  },
  'TL-START-STDOUT': {
    level: 'fail',
    means: 'The command of the client writes text to stdout that is no MCP message.',
    remedy: 'Run Node and Trunkline without a wrapper that prints.',
  },
  'TL-START-SLOW': {
    level: 'warn',
    means: 'The client gets the first list of tools late, and may give up.',
    remedy: 'Find the slow server with `trunkline check`.',
  },
  'TL-START-EMPTY': {
    level: 'warn',
    means: 'Trunkline starts as the client starts it, and lists none of the tools of your servers.',
    remedy: 'Check which configuration the client passes, and which variables it has.',
  },
  'TL-HUB-OK': { level: 'ok', means: 'A hub runs.', remedy: 'Nothing to do.' },
  'TL-HUB-SILENT': {
    level: 'fail',
    means: 'The hub runs and does not answer.',
    remedy: 'Resume it if it was suspended, or end it: `trunkline hub stop`.',
  },
  'TL-HUB-VERSION': {
    level: 'warn',
    means: 'The hub is another version of Trunkline than this one.',
    remedy: 'Start the new version: `trunkline hub restart`.',
  },
  'TL-HUB-CLIENT-VERSION': {
    level: 'warn',
    means: 'A client has started another version of Trunkline than the hub is.',
    remedy: 'Restart the client. If it stays so, register this version: `trunkline connect CLIENT`.',
  },
  'TL-HUB-STALE': {
    level: 'warn',
    means: 'Files of a hub that was killed are left.',
    remedy: 'Remove them: `trunkline doctor --fix`. The next hub does not need them.',
  },
  'TL-HUB-FOLDER': {
    level: 'fail',
    means: 'No hub can run, because its folder cannot be used. Each client starts servers of its own.',
    remedy: 'Name a folder that only you can enter in TRUNKLINE_HUB_DIR.',
  },
  'TL-RUN-STALE': {
    level: 'warn',
    means: 'The list of processes of a Trunkline that was killed is left.',
    remedy: 'Remove it: `trunkline doctor --fix`. The next start does it, too.',
  },
  'TL-RUN-ORPHANS': {
    level: 'warn',
    means: 'Servers of a Trunkline that was killed still run.',
    remedy: 'End them: `trunkline doctor --fix`. The next start does it, too.',
  },
  'TL-RUN-TWICE': {
    level: 'warn',
    means:
      'Two Trunklines run the servers of one configuration: they take twice the memory, and may lock each other out.',
    remedy: 'End one of them, and let its clients use the other.',
  },
  ...REFUSED_NAME_CODES,
  'TL-TOKEN-EXPOSED': {
    level: 'fail',
    means: 'Other users can read a secret file of Trunkline.',
    remedy: 'Close it: `chmod 600 FILE`, or `trunkline doctor --fix`.',
  },
  'TL-TOKEN-MALFORMED': {
    level: 'fail',
    means: 'The token file holds no token.',
    remedy: 'Remove the file. `trunkline token` creates a new one.',
  },
  'TL-RECENT-FAULTS': {
    level: 'warn',
    means: 'The log of the hub has errors of the last 24 hours.',
    remedy: 'See them all: `trunkline logs`.',
  },
  'TL-FIX-DONE': { level: 'ok', means: '`--fix` mended something.', remedy: 'Nothing to do.' },
  'TL-FIX-FAILED': {
    level: 'fail',
    means: '`--fix` could not mend something.',
    remedy: 'Do it by hand, as the finding before it says.',
  },
} as const satisfies CodeTable;
