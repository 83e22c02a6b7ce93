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

function ok(means: string): CodeEntry {
  return { level: 'ok', means, remedy: 'Nothing to do.' };
}

function warn(means: string, remedy: string): CodeEntry {
  return { level: 'warn', means, remedy };
}

function fail(means: string, remedy: string): CodeEntry {
  return { level: 'fail', means, remedy };
}

const MACHINE_CODES = {
  'TL-NODE-OK': ok('This Node runs Trunkline.'),
  'TL-NODE-OLD': fail(
    'This version of Node is too old for Trunkline.',
    'Install Node 20.19 or newer, or 22.3 or newer, and register Trunkline again with it.',
  ),
  'TL-NODE-VANISHING': warn(
    'This Node is in a folder that its version manager removes or renames.',
    'Register Trunkline with a Node at a path that stays, such as the one of the system.',
  ),
  'TL-NODE-ELECTRON': warn(
    'Trunkline runs on the Node inside of a desktop program, which has no npm.',
    'Install Node, and register Trunkline with it. Servers with `package` need its npm.',
  ),
  'TL-NPM-OK': ok('Packages can be installed, because npm is there.'),
  'TL-NPM-MISSING': warn(
    'No npm was found, so no package can be installed.',
    'Install Node with npm. Packages that are installed already still run.',
  ),
  'TL-NPM-UNREACHABLE': warn(
    'The registry of npm is not reached.',
    'Check the network, the proxy and the setting `registry` of npm: `npm ping`.',
  ),
  'TL-PATH-SHELL-ONLY': fail(
    'A command is found with the PATH of your shell, and not with the PATH of desktop programs.',
    'Write its absolute path as `command`.',
  ),
  'TL-DIR-OK': ok('The folders of Trunkline can be used.'),
  'TL-DIR-UNWRITABLE': fail(
    'Trunkline cannot write into one of its folders.',
    'Make the folder writable for you, or free the path if a file is there.',
  ),
  'TL-DIR-FOREIGN': fail(
    'A folder of Trunkline belongs to another user.',
    'Make it yours with `chown -R`. Commands run with `sudo` leave such folders behind.',
  ),
  'TL-DIR-EXPOSED': warn(
    'Every user of this machine can write into a folder of Trunkline, and so decide what runs as you.',
    'Take the right away: `chmod go-w FOLDER`.',
  ),
  'TL-DISK-LOW': warn(
    'The disk of the package store has less than 500 MB left.',
    'Free some space before packages are installed or updated.',
  ),
  'TL-HOME-NETWORK': warn(
    'The data folder is on a network file system, where locks and sockets are not reliable.',
    'Name a folder on a local disk in XDG_DATA_HOME, and in TRUNKLINE_HUB_DIR for the hub.',
  ),
  'TL-HOME-SYNCED': warn(
    'The data folder is in a folder that OneDrive copies to its servers.',
    'Take the folder out of the backup of OneDrive.',
  ),
  'TL-LIMIT-FILES': warn(
    'The limit of open files is low for this number of servers.',
    'Raise it: `ulimit -n` in a shell, or the limits of your desktop session.',
  ),
  'TL-LIMIT-PROCESSES': warn(
    'The limit of processes is low for this number of servers.',
    'Raise it: `ulimit -u` in a shell, or the limits of your desktop session.',
  ),
  'TL-LIMIT-WATCHES': warn(
    'The system allows few watched files, so that changes of the configuration may not be seen.',
    'Raise it: `sudo sysctl fs.inotify.max_user_watches=524288`.',
  ),
  'TL-PROXY-LOCALHOST': warn(
    'A proxy is set, and NO_PROXY does not exempt this machine, so servers may ask the proxy for local addresses.',
    'Add `localhost,127.0.0.1,::1` to NO_PROXY.',
  ),
  'TL-PROXY-MALFORMED': warn(
    'A proxy variable is not a URL.',
    'Write it with its scheme, such as `http://proxy.example:8080`.',
  ),
  'TL-CERT-MISSING': fail(
    'A variable names a file with certificates that does not exist or cannot be read.',
    'Correct the variable, or remove it.',
  ),
  'TL-WSL-MIXED': warn(
    'A command crosses the border between Windows and WSL.',
    'Run client, Trunkline and servers on one side. Paths and signals do not cross the border.',
  ),
  'TL-DOCTOR-TIMEOUT': warn(
    'A check did not end in time.',
    'Run `trunkline doctor` again when the machine is less busy.',
  ),
  'TL-DOCTOR-FAILED': warn(
    'A check itself failed, so it says nothing.',
    'Report it with the output of `trunkline doctor --json`.',
  ),
} satisfies CodeTable;

/** Faults of the configuration, and of the packages and commands that it names. */
const CONFIG_CODES = {
  'TL-CONFIG-OK': ok('The configuration is valid.'),
  'TL-CONFIG-NOT-FOUND': fail(
    'There is no configuration file.',
    'Create one, or name it with `--config FILE` or TRUNKLINE_CONFIG.',
  ),
  'TL-CONFIG-UNREADABLE': fail('The configuration file cannot be read.', 'Check its path and its permissions.'),
  'TL-CONFIG-SYNTAX': fail('The configuration file is not valid YAML.', 'Correct the line that is named.'),
  'TL-CONFIG-INVALID': fail(
    'The configuration file has a key or a value that Trunkline does not know.',
    'Correct the line that is named. `trunkline schema` prints what is allowed.',
  ),
  'TL-CONFIG-WARNING': warn('A setting is accepted and is probably a mistake.', 'Correct the line that is named.'),
  'TL-RULE-IDLE': warn(
    'A rule can never match, so it protects nothing.',
    'Correct the names in the rule, put it before the rule that decides first, or remove it.',
  ),
  'TL-CONFIG-DISABLED': warn(
    'All servers of the configuration are disabled, or `trunkline init` has disabled some that did not start.',
    '`trunkline enable NAME` enables one. `trunkline init` tries again those that it has disabled.',
  ),
  'TL-CONFIG-SHADOWED': warn(
    'A second configuration file exists and is not used.',
    'Remove one of the files, or name the right one with `--config FILE`.',
  ),
  'TL-CONFIG-EXPOSED': warn(
    'Other users can read a file with secrets.',
    'Close it: `chmod 600 FILE`, or `trunkline doctor --fix`.',
  ),
  'TL-CONFIG-WRITABLE': fail(
    'Other users can write the configuration file, and so decide what runs as you.',
    'Close it: `chmod go-w FILE`.',
  ),
  'TL-SECRET-LITERAL': warn(
    'The configuration has a value that looks like a credential.',
    'Put the value into an environment variable, and write its name in braces after a dollar sign.',
  ),
  'TL-VAR-UNSET': fail(
    'A variable that the configuration refers to is not set.',
    'Set it where Trunkline is started, or give it a default with `:-` after its name.',
  ),
  'TL-VAR-USER': warn(
    'A user of a gateway over HTTP lacks a variable that a server needs, so the server cannot run for this user.',
    'Store its value where the gateway runs: `trunkline user set USER VARIABLE`.',
  ),
  'TL-VAR-EMPTY': warn('A variable of a server is empty.', 'Set it, or remove it from the configuration.'),
  'TL-VAR-WHITESPACE': warn(
    'The value of a variable begins or ends with a space, a line break or a quote.',
    'Remove the character; it usually comes from copying, or from a file with Windows line ends.',
  ),
  'TL-VAR-PLACEHOLDER': fail(
    'The value of a variable is still the placeholder of some example.',
    'Put the real value there.',
  ),
  'TL-LOGIN-ISSUER': warn(
    'A login has a secret, and no `issuer` says which authorization server may get it, so the server chooses one.',
    'Add `issuer` to `oauth` of the server. `trunkline auth status` shows that of the stored login.',
  ),
  'TL-COMMAND-NOT-FOUND': fail(
    'The command of a server does not exist.',
    'Install the program, or write its absolute path as `command`.',
  ),
  'TL-COMMAND-NOT-EXECUTABLE': fail(
    'The command of a server is no program that you may run.',
    'Make it executable (`chmod +x FILE`), or run it with its interpreter as `command`.',
  ),
  'TL-COMMAND-INTERPRETER': fail(
    'The script of a server has no interpreter, or one that does not exist.',
    'Correct its first line, or write the interpreter as `command` and the script into `args`.',
  ),
  'TL-COMMAND-LINE': fail(
    '`command` holds a whole command line.',
    'Write the program alone as `command`, and the rest of the line into `args`.',
  ),
  'TL-ARG-PATH-MISSING': warn(
    'An argument looks like the path of a file or a folder that does not exist.',
    'Correct the path. Relative paths belong to the `cwd` of the server.',
  ),
  'TL-SERVER-TWICE': warn(
    'Two servers run the same program with the same arguments and variables.',
    'Remove one of them.',
  ),
  'TL-PACKAGE-OK': ok('The packages are installed.'),
  'TL-PACKAGE-MISSING': warn(
    'A package is not installed yet. Its server installs it when it starts.',
    'Install it in advance: `trunkline install`.',
  ),
  'TL-PACKAGE-DAMAGED': fail(
    'An installed package lacks files.',
    'Install it again: `trunkline install`, or `trunkline doctor --fix`.',
  ),
  'TL-PACKAGE-DEPRECATED': warn(
    'The author of a package says that it should no longer be used.',
    'Follow the words of the author; often the package has a new name.',
  ),
  'TL-PACKAGE-REMARK': warn(
    'A package may not work on this machine.',
    'The evidence has the reason, such as another Node or an install script that it needs.',
  ),
  'TL-LOCK-UNREADABLE': fail(
    'The lock file of the packages cannot be used.',
    'Correct the file, or remove it to lock the newest accepted versions.',
  ),
  'TL-NAMES-LONG': warn(
    'Names of tools are so long that clients cut or refuse them.',
    'Use a shorter key for the server, or deny the tools.',
  ),
  'TL-TOOLS-MANY': warn(
    'More tools are listed than some clients accept.',
    'List fewer, with `tools.allow` or `tools.deny` of a server, or let such clients search tools, with `gateway: { mode: auto }`.',
  ),
  'TL-TOOLS-UNUSED': warn(
    'Tools were not called for 30 days, as the call log shows, and a model reads them in each conversation.',
    'Hide them with the line of the finding, in the entry of their server.',
  ),
  'TL-TOOLS-TWINS': warn(
    'Tools of several servers have the same name, among which a model has to choose.',
    'Hide or rename one with the line of the finding, in the entry of its server.',
  ),
  'TL-TOOLS-UNMARKED': warn(
    'Tools whose names sound destructive have no annotations, so that a client cannot know whether to ask first.',
    'Deny those that nobody needs with `tools: { deny: [NAME] }`, or tell the authors of the server.',
  ),
  'TL-TOOLS-HEAVY': warn(
    'The list of tools takes more than a tenth of the context of a usual model.',
    'List fewer tools of the largest servers, with `tools.allow` or `tools.deny`.',
  ),
} satisfies CodeTable;

/** Faults between the clients and Trunkline, and of its own processes and files. */
const CLIENT_CODES = {
  'TL-CLIENT-OK': ok('A client has Trunkline registered.'),
  'TL-CLIENT-NONE': warn(
    'No client has Trunkline registered.',
    'Register it: `trunkline connect CLIENT`. `trunkline connect` alone lists the clients.',
  ),
  'TL-CLIENT-FILE': fail(
    'The file in which a client keeps its servers cannot be read.',
    'Correct the file. The client itself usually ignores all servers in such a file.',
  ),
  'TL-CLIENT-COMMAND': fail(
    'A client is told to run a program or a file that does not exist.',
    'Register Trunkline again: `trunkline connect CLIENT`.',
  ),
  'TL-CLIENT-RELATIVE': warn(
    'A client is told to run a program by its name, which depends on the PATH that the client has.',
    'Register Trunkline again, with absolute paths: `trunkline connect CLIENT`.',
  ),
  'TL-CLIENT-CONFIG': fail(
    'A client passes a configuration file that does not exist.',
    'Correct the path after `--config` in the file of the client.',
  ),
  'TL-CLIENT-NO-CONFIG': warn(
    'A client passes no configuration, so a variable or another default decides which one it gets.',
    'Register Trunkline again, with the path of its configuration: `trunkline connect CLIENT`.',
  ),
  'TL-CLIENT-VERSION': warn(
    'A client runs another copy of Trunkline than this one.',
    'Register this one: `trunkline connect CLIENT`. All clients should run the same version.',
  ),
  'TL-CLIENT-TWICE': warn(
    'A client has Trunkline registered twice, so it shows each tool twice.',
    'Remove one of the two entries.',
  ),
  'TL-CLIENT-DISABLED': warn('Trunkline is registered in a client, and disabled there.', 'Enable it in the client.'),
  'TL-CLIENT-DUPLICATE': warn(
    'A client runs a server itself that Trunkline runs for it too, so it shows its tools twice.',
    'Remove the server from the file of the client.',
  ),
  'TL-CLIENT-GATEWAY': warn(
    'A client that uses Trunkline runs another gateway, too. A server of both runs twice, and its tools are shown twice.',
    'Take the servers of the other gateway over with `trunkline import --from FILE`, and remove the other gateway.',
  ),
  'TL-GATEWAY-SAME-SERVERS': warn(
    'Another gateway also runs servers of Trunkline, so these take twice the memory, and may lock each other out.',
    'Take its servers over with `trunkline import --from FILE`, and end the other gateway.',
  ),
  'TL-GATEWAY-OTHER': ok('Another gateway runs, and none of its processes is a server of Trunkline.'),
  'TL-CLIENT-UNREACHED': fail(
    'A client is told to use Trunkline at an address where nothing listens.',
    'Start `trunkline serve --http PORT`, or correct the address.',
  ),
  'TL-CLIENT-FOREIGN': fail(
    'A client is told to use Trunkline at an address where another program answers.',
    'Start `trunkline serve --http` on another port, and correct the address in the client.',
  ),
  'TL-CLIENT-TOKEN': fail(
    'A client uses Trunkline over HTTP with a wrong token, or without one.',
    'Give the client the header `Authorization: Bearer TOKEN`. `trunkline token` prints the token.',
  ),
  'TL-CLIENT-CLEARTEXT': warn(
    'A client uses Trunkline on another machine without TLS, so that the network can read the token and all data.',
    'Start `trunkline serve --http` with `--tls-cert` and `--tls-key`, and use an `https` address.',
  ),
  'TL-CLIENT-PENDING': warn(
    'Claude Code has not asked yet whether to use Trunkline from the file of this project, and does not run it.',
    'Start `claude` in the folder of the project, and approve the server.',
  ),
  'TL-CLIENT-MSIX': warn(
    'Claude Desktop from the Windows store does not read the file in which Trunkline is registered.',
    'Register Trunkline in the file inside of its package folder.',
  ),
  'TL-CLIENT-DENIED': fail(
    'The settings of a client, or those of its administrator, forbid Trunkline or its tools.',
    'Change the setting in the named file. Managed settings belong to the administrator of the machine.',
  ),
  'TL-CLIENT-LOG': warn(
    'The log of a client shows a failure of Trunkline.',
    'Read the evidence. If it is older than your last change, restart the client.',
  ),
  'TL-START-OK': ok('Trunkline starts as the client starts it.'),
  'TL-START-FAILED': fail(
    'Trunkline does not start as the client starts it.',
    'Read the evidence, and register Trunkline again.',
  ),
  'TL-START-STDOUT': fail(
    'The command of the client writes text to stdout that is no MCP message.',
    'Run Node and Trunkline without a wrapper that prints.',
  ),
  'TL-START-SLOW': warn(
    'The client gets the first list of tools late, and may give up.',
    'Find the slow server with `trunkline check`.',
  ),
  'TL-START-EMPTY': warn(
    'Trunkline starts as the client starts it, and lists none of the tools of your servers.',
    'Check which configuration the client passes, and which variables it has.',
  ),
  'TL-HUB-OK': ok('A hub runs.'),
  'TL-HUB-SILENT': fail(
    'The hub runs and does not answer.',
    'Resume it if it was suspended, or end it: `trunkline hub stop`.',
  ),
  'TL-HUB-VERSION': warn(
    'The hub is another version of Trunkline than this one.',
    'Start the new version: `trunkline hub restart`.',
  ),
  'TL-HUB-CLIENT-VERSION': warn(
    'A client has started another version of Trunkline than the hub is.',
    'Restart the client. If it stays so, register this version: `trunkline connect CLIENT`.',
  ),
  'TL-HUB-STALE': warn(
    'Files of a hub that was killed are left.',
    'Remove them: `trunkline doctor --fix`. The next hub does not need them.',
  ),
  'TL-HUB-FOLDER': fail(
    'No hub can run, because its folder cannot be used. Each client starts servers of its own.',
    'Name a folder that only you can enter in TRUNKLINE_HUB_DIR.',
  ),
  'TL-RUN-OK': ok('Processes of Trunkline run.'),
  'TL-RUN-CONFIG-GONE': warn(
    'A gateway runs on with a configuration file that does not exist any more.',
    'Move the file back, or end the gateway: `trunkline ps --all` says how.',
  ),
  'TL-RUN-STALE': warn(
    'The list of processes of a Trunkline that was killed is left.',
    'Remove it: `trunkline doctor --fix`. The next start does it, too.',
  ),
  'TL-RUN-ORPHANS': warn(
    'Servers of a Trunkline that was killed still run.',
    'End them: `trunkline doctor --fix`. The next start does it, too.',
  ),
  'TL-RUN-TWICE': warn(
    'Two Trunklines run the servers of one configuration, so these take twice the memory, and may lock each other out.',
    'End one of them, and let its clients use the other.',
  ),
  'TL-CLUSTER-OK': ok('The gateways of the cluster and its store answer.'),
  'TL-CLUSTER-SETTINGS': warn(
    'The settings of the cluster have a variable that is not set, or a text that is no address.',
    'Set the variable in the environment of the gateway, or correct `gateway.cluster`.',
  ),
  'TL-CLUSTER-SILENT': warn(
    'The gateway on this machine does not tell commands about its cluster.',
    'Start it with `trunkline serve --http`, or restart it if its key file or `gateway.cluster` has changed.',
  ),
  'TL-CLUSTER-STORE-AWAY': warn(
    'The store of the cluster does not answer. Sessions go on, and users without a home are placed without it.',
    'Start the store, or correct `gateway.cluster`. The gateways use it again by themselves.',
  ),
  'TL-CLUSTER-UNREACHABLE': warn(
    'A gateway of the cluster does not answer, and the others serve its users.',
    'If the gateway runs, let the others connect to its address.',
  ),
  'TL-CLUSTER-VERSIONS': warn(
    'The gateways of the cluster have different versions of Trunkline.',
    'Finish the update, one gateway after another.',
  ),
  'TL-CLUSTER-SERVERS': warn(
    'The gateways of the cluster have different servers in their configurations, so a user may get other tools after a move.',
    'Give all gateways the same configuration.',
  ),
  'TL-CLUSTER-KEYS': warn(
    'Another gateway uses the store under the same name with another key, so it is no member of the cluster.',
    'Give all gateways the same file for `gateway.sealKeyFile`, or each cluster a `name` of its own.',
  ),
  'TL-FRONT-OK': ok('The identity provider can be asked for logins through Trunkline.'),
  'TL-FRONT-PROVIDER': warn(
    'The identity provider behind `gateway.http.auth.front` cannot log users in, so clients without a token cannot get one.',
    'Let this machine reach the issuer, and compare `auth.jwt.issuer` with the `issuer` in its metadata.',
  ),
  'TL-HTTP-HOST-REFUSED': warn(
    'Trunkline over HTTP has refused requests, because it is not allowed to answer to the name in their Host header.',
    'If clients of yours use this name for Trunkline, allow it as they send it: `--allowed-host NAME`. Otherwise do nothing, because a web page may have tried to reach Trunkline.',
  ),
  'TL-HTTP-ORIGIN-REFUSED': warn(
    'Trunkline over HTTP has refused requests of web pages, because their Origin is not allowed.',
    'If you know this web page and want it to use your tools, allow it: `--allowed-origin ORIGIN`. Otherwise do nothing: Trunkline has kept it away.',
  ),
  'TL-TOKEN-EXPOSED': fail(
    'Other users can read a secret file of Trunkline.',
    'Close it: `chmod 600 FILE`, or `trunkline doctor --fix`.',
  ),
  'TL-TOKEN-MALFORMED': fail('The token file holds no token.', 'Remove the file. `trunkline token` creates a new one.'),
  'TL-RECENT-FAULTS': warn(
    'The log of the hub has faults of the last 24 hours.',
    'Their times tell whether they are from before a repair. See them all: `trunkline logs`.',
  ),
  'TL-FIX-DONE': ok('`--fix` mended something.'),
  'TL-FIX-FAILED': fail('`--fix` could not mend something.', 'Do it by hand, as the finding before it says.'),
} satisfies CodeTable;

const SERVER_CODES = {
  'TL-SERVER-OK': ok('The server starts and lists its tools.'),
  'TL-SERVER-MISCONFIGURED': fail(
    'The entry of the server in the configuration is wrong, so it cannot run.',
    'Correct the line that is named.',
  ),
  'TL-SERVER-INSTALLING': warn('The package of the server is being installed.', 'Wait a minute, then try again.'),
  'TL-SERVER-NOT-INSTALLED': fail(
    'The package of the server could not be installed.',
    'Read the output of npm, fix the cause, then run `trunkline install`.',
  ),
  'TL-SERVER-STARTING': warn('The server is still starting.', 'Try again in a moment.'),
  'TL-SERVER-RESTARTING': fail(
    'The server ended unexpectedly and is being restarted.',
    'Try again in a moment. If it keeps failing, its log says why.',
  ),
  'TL-SERVER-PARKED': fail(
    'The server failed too often in a row, so it is restarted rarely.',
    'Fix the cause that its log names, then restart it: `trunkline restart SERVER`.',
  ),
  'TL-SERVER-UNREACHABLE': fail(
    'The remote server cannot be reached, because there is no network, or it takes no connection.',
    'Check the network, `url`, `proxy` and `caFile`. Trunkline tries again every two seconds.',
  ),
  'TL-SERVER-LOGIN': fail(
    'The remote server needs a login, or does not accept the credentials of its entry.',
    'Log in with `trunkline login SERVER`, or correct `headers` or `headersCommand` of the server.',
  ),
  'TL-SERVER-STOPPED': warn('The server is stopped.', 'Restart it: `trunkline restart SERVER`.'),
  'TL-SERVER-UNRESPONSIVE': fail(
    'The server has stopped answering.',
    'Wait: Trunkline probes it, and restarts it if it stays silent.',
  ),
  'TL-SERVER-BREAKER-OPEN': fail(
    'Too many recent calls of the server failed, so calls to it are refused for a while.',
    'Wait, or restart it: `trunkline restart SERVER`.',
  ),
  'TL-SERVER-RESOURCES': fail(
    'The machine lacks a resource that a new process needs, such as open files or memory.',
    'Close other programs, or raise the limit that the evidence names.',
  ),
  'TL-SERVER-SPAWN': fail(
    'The process of the server could not be started.',
    'Install the program, or set `command` to its full path, and put the rest of a command line into `args`. If the file is there, make it executable, or run it with its interpreter as `command`.',
  ),
  'TL-SERVER-EXITED': fail(
    'The server ended before it was ready.',
    'Its output says why; often an argument, a variable in `env` or a file is missing.',
  ),
  'TL-SERVER-SILENT': fail(
    'The server did not answer the handshake in time.',
    'Check that it is an MCP server for stdio. If it needs more time, raise `startTimeout`.',
  ),
  'TL-SERVER-HANDSHAKE': fail(
    'The server answered the handshake with something that is not MCP.',
    'Install a newer version of the server. If its output does not show the cause, `trunkline check SERVER -vv` logs all of it.',
  ),
  'TL-SERVER-LISTS': fail(
    'The server runs, but does not list its tools.',
    'Read its log; often the network or a service that it needs is missing.',
  ),
  'TL-SERVER-UNAUTHORIZED': fail(
    'The output of the server says that its key or token is missing or wrong.',
    'Set the key in `env` of the server.',
  ),
  'TL-SERVER-MODULE': fail(
    'The server lacks a module that it needs.',
    'If the module is the file in `args`, correct its path. Otherwise install the server again: `trunkline install`, `npm ci` in its folder, or pip for Python.',
  ),
  'TL-SERVER-OLD-RUNTIME': fail(
    'The server needs another version of Node than the one that runs it.',
    'Run it with a newer Node: write its absolute path as `command`.',
  ),
  'TL-SERVER-FILE': fail(
    'The server does not find a file or folder that it needs, or may not use it.',
    'Correct the path in `args` or `env`, and the rights of the file.',
  ),
  'TL-SERVER-PORT': fail(
    'The server needs a port that another program uses.',
    'End the other program, which is often the same server run by a client, or choose another port.',
  ),
  'TL-SERVER-NETWORK': fail(
    'The server does not reach a host that it needs.',
    'Check the network and the service. Behind a proxy, set HTTPS_PROXY.',
  ),
  'TL-SERVER-CERTIFICATE': fail(
    'The server does not trust the certificate of a host.',
    'Set NODE_EXTRA_CA_CERTS (for Python, SSL_CERT_FILE) to the file with your certificates.',
  ),
  'TL-SERVER-NATIVE': fail(
    'A part of the server that is built for one system or one Node does not load.',
    'Set `installScripts: true` for its package, or install it with the Node that runs it.',
  ),
  'TL-SERVER-STDOUT': warn(
    'The server writes text to stdout that is no MCP message. Trunkline drops it; other clients may fail.',
    'Turn its banner or its log on stdout off, if it has a setting for that.',
  ),
  'TL-SERVER-QUARANTINED': warn(
    'Entries of the server are not listed, because they are malformed or their names are taken.',
    'Read the reasons in the evidence. If a name is taken, deny the entry at one of the two servers.',
  ),
  'TL-SERVER-HIDDEN-TEXT': warn(
    'Descriptions of tools have invisible characters, which a model reads and you do not.',
    'Do not use the server before you know why: `trunkline approve SERVER` shows them.',
  ),
  'TL-SERVER-TRUNCATED': warn(
    'The list of the server is too large, so that a part of it is missing.',
    'Deny tools of the server, or ask its author for shorter lists.',
  ),
  'TL-SERVER-LONG-TEXT': warn(
    'Descriptions of tools are longer than 2 KB, after which some clients cut them.',
    'Nothing to do, unless a model misuses these tools.',
  ),
  'TL-SERVER-APPROVAL': warn(
    'Tools of the server wait for your approval, and are not offered.',
    'Review them: `trunkline approve SERVER`.',
  ),
  'TL-SERVER-INSECURE': warn(
    'The server is asked over plain `http:` on another machine, so others on the network can read and change everything.',
    'Put TLS in front of the server, write `https:` in its `url`, and remove `insecure: true`.',
  ),
  'TL-SERVER-EMPTY': warn(
    'The server runs and offers nothing: it lists no tools, prompts or resources.',
    'If it should offer something, look at its arguments and variables. If not, remove it: `trunkline remove SERVER`.',
  ),
  'TL-SERVER-SHARING': warn(
    'The server runs a process for each session, because it is not known whether it keeps state between calls.',
    'If it keeps none, write `sharing: profile` in its entry. If it does, write `sharing: isolated`, which ends this warning.',
  ),
  'TL-SERVER-LIST-MISSING': warn(
    'The server announces prompts or resources, and its list of them cannot be read.',
    'Report it to the authors of the server. Its tools work all the same.',
  ),
  'TL-SERVER-PING': warn(
    'The server does not answer `ping`, which MCP requires of it. A client that asks so may give it up.',
    'Report it to the authors of the server. Trunkline asks for its tools, too, before it restarts it.',
  ),
  'TL-SERVER-LEFTOVERS': warn(
    'The server left processes behind when it ended, outside of its process group. Trunkline ended them.',
    'Set `leaveRunning: true` if they are to go on. Otherwise there is nothing to do.',
  ),
  'TL-SANDBOX-OK': ok('Servers with `sandbox` can be confined on this machine.'),
  'TL-SANDBOX-MISSING': fail(
    'A server must run confined, and bubblewrap is not installed, so the server does not start.',
    'Install the package `bubblewrap` of your system, such as with `sudo apt install bubblewrap`.',
  ),
  'TL-SANDBOX-FORBIDDEN': fail(
    'A server must run confined, and the system forbids the namespaces for that, so the server does not start.',
    'Allow user namespaces; the evidence names the setting of this system.',
  ),
  'TL-SANDBOX-UNSUPPORTED': fail(
    'A server must run confined, which Trunkline can do on Linux on x86-64 only, so the server does not start.',
    'Run Trunkline on such a machine, or set `sandbox: false` to run the server unconfined.',
  ),
  'TL-SANDBOX-ENTRY': fail(
    'The entry of a server opens so much that confining the server would protect nothing, so the server does not start.',
    'Name the folders that the server needs, in place of one that also has the files of Trunkline.',
  ),
  'TL-SANDBOX-REFUSED': warn(
    'A confined server was refused a connection, or a file to write, that its entry does not allow.',
    'If the server should have it, add it to `network` or `write` of `sandbox`; the evidence has the line.',
  ),
  'TL-SANDBOX-PROXY': warn(
    'A confined server may use the network, and its Node is too old to send `fetch` through the proxy of the sandbox.',
    'Run it with Node 22.21 or newer, or 24: write its absolute path as `command`.',
  ),
  'TL-SERVER-LINGERS': warn(
    'The server ended neither when its stdin was closed nor at SIGTERM, so it was killed.',
    'Nothing to do, unless it loses data that way; then tell its author.',
  ),
} satisfies CodeTable;

/** Reasons why Trunkline fails a call. The state of a server is such a reason too; its codes are among those of servers. */
const CALL_CODES = {
  'TL-CALL-NOT-APPROVED': fail('The tool, as it is now, is not approved.', 'Review it: `trunkline approve SERVER`.'),
  'TL-CALL-DENIED': fail(
    'A rule of the configuration denies the request.',
    'If it should be allowed, change the rule that `rule` names; `trunkline rules test TOOL` says which rule decides.',
  ),
  'TL-CALL-INTERCEPTED': fail(
    'An interceptor refuses the request or its result, or cannot look at it.',
    '`rule` names the interceptor. If it cannot look, `trunkline status` says why; see docs/interceptors.md.',
  ),
  'TL-CALL-QUEUE-FULL': fail(
    'Too many calls wait, for this server or in Trunkline as a whole.',
    'Try again later, or raise `concurrency` or `maxQueued` of the server.',
  ),
  'TL-CALL-QUEUE-TIMEOUT': fail(
    'The server was busy with other calls for too long.',
    'Try again later, or raise `concurrency` or `maxWait` of the server.',
  ),
  'TL-CALL-OVERLOADED': fail(
    'The server took none of its input for five seconds, or too little of it in time, so the call was not sent.',
    'Wait, or restart it: `trunkline restart SERVER`.',
  ),
  'TL-CALL-TIMEOUT': fail(
    'The server did not answer the call in time.',
    'Check whether the call took effect. If it needs more time, raise `timeout` of the server.',
  ),
  'TL-CALL-EXITED': fail(
    'The server ended during the call.',
    'Check whether the call took effect before you repeat it. The log of the server says why it ended.',
  ),
  'TL-CALL-CONNECTION-LOST': fail(
    'The connection to a remote server broke before the answer.',
    'Check whether the call took effect before you repeat it.',
  ),
  'TL-CALL-UNAVAILABLE': fail(
    'A remote server is overloaded or out of order, as the status of its answer says.',
    'Wait, or ask those who run the server.',
  ),
  'TL-CALL-REFUSED': fail(
    'A remote server refused a request, or did not answer as an MCP server does.',
    'Read the reason that the server gives. If there is none, check `url` and `transport` of the server.',
  ),
  'TL-CALL-TOO-LARGE': fail(
    'The answer was larger than `maxFrame` of the server allows.',
    'Ask for less, or raise `maxFrame`.',
  ),
  'TL-CALL-DROPPED': fail(
    'The answer was dropped, because unfinished messages took all of `gateway.maxPartial`.',
    'Ask for less at once, or raise `gateway.maxPartial`.',
  ),
  'TL-CALL-MALFORMED': fail(
    'The answer of the server was not valid JSON-RPC, or its result was no object.',
    'Report it to the author of the server.',
  ),
  'TL-CALL-HUB-EXITED': fail(
    'The process that clients share ended during the call.',
    'Check whether the call took effect before you repeat it. `trunkline logs` says why it ended.',
  ),
  'TL-CALL-INSTANCE-LOST': fail(
    'One of several gateways ended during the call, or the connection of the proxy to it broke.',
    'Check whether the call took effect before you repeat it.',
  ),
  'TL-CALL-INTERNAL': fail(
    'Trunkline failed at the request because of a bug of its own.',
    'Check whether the call took effect, and report the bug with the log: `trunkline logs`.',
  ),
} satisfies CodeTable;

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

export const CODES: Readonly<Record<Code, CodeEntry>> = ALL;
