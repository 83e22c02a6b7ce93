/** Severity of a finding. `warn` is worth a look, `fail` keeps something from working. */
export type Level = 'ok' | 'warn' | 'fail';

/** Meaning of one code. Codes are stable, so an entry may get other words but no other meaning. */
interface CodeEntry {
  readonly level: Level;
  /** One sentence. */
  readonly means: string;
  /** Advice in one or two sentences. */
  readonly remedy: string;
}

type CodeTable = Readonly<Record<`TL-${string}`, CodeEntry>>;

/** Faults of the machine that Trunkline runs on. */
const MACHINE_CODES = {
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

/** Faults of the configuration, and of the packages and commands that it names. */
const CONFIG_CODES = {
  'TL-CONFIG-OK': { level: 'ok', means: 'The configuration is valid.', remedy: 'Nothing to do.' },
  'TL-CONFIG-NOT-FOUND': {
    level: 'fail',
    means: 'There is no configuration file.',
    remedy: 'Create one, or name it with `--config FILE` or TRUNKLINE_CONFIG.',
  },
  'TL-CONFIG-UNREADABLE': {
    level: 'fail',
    means: 'The configuration file cannot be read.',
    remedy: 'Check its path and its permissions.',
  },
  'TL-CONFIG-SYNTAX': {
    level: 'fail',
    means: 'The configuration file is not valid YAML.',
    remedy: 'Correct the line that is named.',
  },
  'TL-CONFIG-INVALID': {
    level: 'fail',
    means: 'The configuration file has a key or a value that Trunkline does not know.',
    remedy: 'Correct the line that is named. `trunkline schema` prints what is allowed.',
  },
  'TL-CONFIG-WARNING': {
    level: 'warn',
    means: 'A setting is accepted and is probably a mistake.',
    remedy: 'Correct the line that is named.',
  },
  'TL-CONFIG-EMPTY': {
    level: 'warn',
    means: 'The configuration has no servers.',
    remedy: 'Add one below `servers`.',
  },
  'TL-CONFIG-SHADOWED': {
    level: 'warn',
    means: 'A second configuration file exists and is not used.',
    remedy: 'Remove one of the files, or name the right one with `--config FILE`.',
  },
  'TL-CONFIG-EXPOSED': {
    level: 'warn',
    means: 'Other users can read a file with secrets.',
    remedy: 'Close it: `chmod 600 FILE`, or `trunkline doctor --fix`.',
  },
  'TL-CONFIG-WRITABLE': {
    level: 'fail',
    means: 'Other users can write the configuration file, and so decide what runs as you.',
    remedy: 'Close it: `chmod go-w FILE`.',
  },
  'TL-SECRET-LITERAL': {
    level: 'warn',
    means: 'The configuration has a value that looks like a credential.',
    remedy: 'Put the value into an environment variable, and write its name in braces after a dollar sign.',
  },
  'TL-VAR-UNSET': {
    level: 'fail',
    means: 'A variable that the configuration refers to is not set.',
    remedy: 'Set it where Trunkline is started, or give it a default with `:-` after its name.',
  },
  'TL-VAR-EMPTY': {
    level: 'warn',
    means: 'A variable of a server is empty.',
    remedy: 'Set it, or remove it from the configuration.',
  },
  'TL-VAR-WHITESPACE': {
    level: 'warn',
    means: 'The value of a variable begins or ends with a space, a line break or a quote.',
    remedy: 'Remove the character; it usually comes from copying, or from a file with Windows line ends.',
  },
  'TL-VAR-PLACEHOLDER': {
    level: 'fail',
    means: 'The value of a variable is still the placeholder of some example.',
    remedy: 'Put the real value there.',
  },
  'TL-COMMAND-NOT-FOUND': {
    level: 'fail',
    means: 'The command of a server does not exist.',
    remedy: 'Install the program, or write its absolute path as `command`.',
  },
  'TL-COMMAND-NOT-EXECUTABLE': {
    level: 'fail',
    means: 'The command of a server is no program that you may run.',
    remedy: 'Make it executable (`chmod +x FILE`), or run it with its interpreter as `command`.',
  },
  'TL-COMMAND-INTERPRETER': {
    level: 'fail',
    means: 'The script of a server has no interpreter, or one that does not exist.',
    remedy: 'Correct its first line, or write the interpreter as `command` and the script into `args`.',
  },
  'TL-COMMAND-LINE': {
    level: 'fail',
    means: '`command` holds a whole command line.',
    remedy: 'Write the program alone as `command`, and the rest of the line into `args`.',
  },
  'TL-ARG-PATH-MISSING': {
    level: 'warn',
    means: 'An argument looks like the path of a file or a folder that does not exist.',
    remedy: 'Correct the path. Relative paths belong to the `cwd` of the server.',
  },
  'TL-SERVER-TWICE': {
    level: 'warn',
    means: 'Two servers run the same program with the same arguments and variables.',
    remedy: 'Remove one of them.',
  },
  'TL-PACKAGE-OK': { level: 'ok', means: 'The packages are installed.', remedy: 'Nothing to do.' },
  'TL-PACKAGE-MISSING': {
    level: 'warn',
    means: 'A package is not installed yet. Its server installs it when it starts.',
    remedy: 'Install it in advance: `trunkline install`.',
  },
  'TL-PACKAGE-DAMAGED': {
    level: 'fail',
    means: 'An installed package lacks files.',
    remedy: 'Install it again: `trunkline install`, or `trunkline doctor --fix`.',
  },
  'TL-PACKAGE-DEPRECATED': {
    level: 'warn',
    means: 'The author of a package says that it should no longer be used.',
    remedy: 'Follow the words of the author; often the package has a new name.',
  },
  'TL-PACKAGE-REMARK': {
    level: 'warn',
    means: 'A package may not work on this machine.',
    remedy: 'See the evidence: it needs another Node, or an install script.',
  },
  'TL-LOCK-UNREADABLE': {
    level: 'fail',
    means: 'The lock file of the packages cannot be used.',
    remedy: 'Correct the file, or remove it to lock the newest accepted versions.',
  },
  'TL-NAMES-LONG': {
    level: 'warn',
    means: 'Names of tools are so long that clients cut or refuse them.',
    remedy: 'Use a shorter key for the server, or deny the tools.',
  },
  'TL-TOOLS-MANY': {
    level: 'warn',
    means: 'More tools are listed than some clients accept.',
    remedy: 'List fewer, with `tools.allow` or `tools.deny` of a server.',
  },
  'TL-TOOLS-UNMARKED': {
    level: 'warn',
    means:
      'Tools whose names sound destructive have no annotations, so that a client cannot know whether to ask first.',
    remedy: 'Deny those that nobody needs with `tools: { deny: [NAME] }`, or tell the authors of the server.',
  },
  'TL-TOOLS-HEAVY': {
    level: 'warn',
    means: 'The list of tools takes more than a tenth of the context of a usual model.',
    remedy: 'List fewer tools of the largest servers, with `tools.allow` or `tools.deny`.',
  },
} as const satisfies CodeTable;

/** Faults between the clients and Trunkline, and of its own processes and files. */
const CLIENT_CODES = {
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
  'TL-HTTP-HOST-REFUSED': {
    level: 'warn',
    means:
      'Trunkline over HTTP has refused requests, because it is not allowed to answer to the name in their Host header.',
    remedy:
      'If clients of yours use this name for Trunkline, allow it as they send it: `--allowed-host NAME`. Otherwise do nothing: a web page may have tried to reach Trunkline.',
  },
  'TL-HTTP-ORIGIN-REFUSED': {
    level: 'warn',
    means: 'Trunkline over HTTP has refused requests of web pages, because their Origin is not allowed.',
    remedy:
      'If you know this web page and want it to use your tools, allow it: `--allowed-origin ORIGIN`. Otherwise do nothing: Trunkline has kept it away.',
  },
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

/** Faults of a server that is started. */
const SERVER_CODES = {
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

/** Reasons why Trunkline fails a call. The state of a server is such a reason too; its codes are among those of servers. */
const CALL_CODES = {
  'TL-CALL-NOT-APPROVED': {
    level: 'fail',
    means: 'The tool, as it is now, is not approved.',
    remedy: 'Review it: `trunkline approve SERVER`.',
  },
  'TL-CALL-QUEUE-FULL': {
    level: 'fail',
    means: 'Too many calls wait, for this server or in Trunkline as a whole.',
    remedy: 'Try again later, or raise `concurrency` or `maxQueued` of the server.',
  },
  'TL-CALL-QUEUE-TIMEOUT': {
    level: 'fail',
    means: 'The server was busy with other calls for too long.',
    remedy: 'Try again later, or raise `concurrency` or `maxWait` of the server.',
  },
  'TL-CALL-OVERLOADED': {
    level: 'fail',
    means: 'The server does not read its input, so no more messages can be sent to it.',
    remedy: 'Wait, or restart it: `trunkline restart SERVER`.',
  },
  'TL-CALL-TIMEOUT': {
    level: 'fail',
    means: 'The server did not answer the call in time.',
    remedy: 'Check whether the call took effect. If it needs more time, raise `timeout` of the server.',
  },
  'TL-CALL-EXITED': {
    level: 'fail',
    means: 'The server ended during the call.',
    remedy: 'Check whether the call took effect before you repeat it. The log of the server says why it ended.',
  },
  'TL-CALL-TOO-LARGE': {
    level: 'fail',
    means: 'The answer was larger than `maxFrame` of the server allows.',
    remedy: 'Ask for less, or raise `maxFrame`.',
  },
  'TL-CALL-DROPPED': {
    level: 'fail',
    means: 'The answer was dropped, because unfinished messages took all of `gateway.maxPartial`.',
    remedy: 'Ask for less at once, or raise `gateway.maxPartial`.',
  },
  'TL-CALL-MALFORMED': {
    level: 'fail',
    means: 'The answer of the server was not valid JSON-RPC, or its result was no object.',
    remedy: 'Report it to the author of the server.',
  },
  'TL-CALL-HUB-EXITED': {
    level: 'fail',
    means: 'The process that clients share ended during the call.',
    remedy: 'Check whether the call took effect before you repeat it. `trunkline logs` says why it ended.',
  },
  'TL-CALL-INTERNAL': {
    level: 'fail',
    means: 'Trunkline failed at the request because of a bug of its own.',
    remedy: 'Check whether the call took effect, and report the bug with the log: `trunkline logs`.',
  },
} as const satisfies CodeTable;

/** All codes by area, in the order in which people read about them. */
export const AREAS = [
  { title: 'Machine', codes: MACHINE_CODES },
  { title: 'Configuration', codes: CONFIG_CODES },
  { title: 'Clients and processes', codes: CLIENT_CODES },
  { title: 'Servers', codes: SERVER_CODES },
  { title: 'Calls', codes: CALL_CODES },
] as const;

const ALL = { ...MACHINE_CODES, ...CONFIG_CODES, ...CLIENT_CODES, ...SERVER_CODES, ...CALL_CODES };

/** A stable name for one kind of finding or failure. */
export type Code = keyof typeof ALL;

/** The meaning of each code. */
export const CODES: Readonly<Record<Code, CodeEntry>> = ALL;
