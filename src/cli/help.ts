export const COMMANDS = [
  'serve',
  'check',
  'tools',
  'call',
  'status',
  'ps',
  'logs',
  'restart',
  'stop',
  'hub',
  'approve',
  'install',
  'update',
  'outdated',
  'connect',
  'disconnect',
  'undo',
  'schema',
  'token',
] as const;
export type Command = (typeof COMMANDS)[number];

export function isCommand(word: string): word is Command {
  return (COMMANDS as readonly string[]).includes(word);
}

/** The text of `--help`: for one command, or the overview. */
export function helpText(command: Command | undefined): string {
  const about = command === undefined ? OVERVIEW : DETAILS[command];
  const own = command === undefined ? [] : (OWN_OPTIONS[command] ?? []);
  return [about, `Options:\n${[...own, OPTIONS].join('\n')}`, EXIT_CODES].join('\n\n');
}

const OVERVIEW = `Trunkline is one MCP server in front of all your others: it runs your stdio MCP servers
as supervised processes and offers their tools as one list.

Usage:
  trunkline [serve]              serve an MCP client over stdin and stdout
  trunkline check [SERVER…]      start every server once and report problems
  trunkline tools [SERVER…]      list the tools of all servers
  trunkline call NAME [JSON]     call one tool and print its result
  trunkline status               show what is wrong with the running servers, and what to do
  trunkline ps                   list the hub, its clients and the processes of its servers
  trunkline logs [SERVER]        print the log of the hub, or what concerns one server
  trunkline restart SERVER       restart a running server
  trunkline stop                 stop the hub and its servers
  trunkline hub COMMAND          status, stop or restart of the hub itself
  trunkline approve [SERVER]     review new and changed tools, and approve them
  trunkline install [SERVER…]    install missing packages
  trunkline update [NAME]        update packages and report which tools change
  trunkline outdated             list installed, accepted and newest versions of packages
  trunkline connect CLIENT…      register Trunkline with MCP clients on this machine
  trunkline disconnect CLIENT…   remove Trunkline from clients
  trunkline undo [CLIENT…]       take back the last change of clients' files
  trunkline schema               print the JSON Schema of the configuration
  trunkline token                print the token for HTTP clients
  trunkline help [COMMAND]       show help for a command

Examples:
  trunkline check
  trunkline tools files
  trunkline call files__read_text_file '{"path": "notes.txt"}'
  trunkline --config ~/servers.yaml

Without --config, Trunkline uses the file named by the variable TRUNKLINE_CONFIG, or
trunkline.yaml in the current folder, or trunkline.yaml in your configuration folder.`;

const DETAILS: Readonly<Record<Command, string>> = {
  serve: `Usage: trunkline [serve] [OPTIONS]

Serves an MCP client over stdin and stdout until the client closes stdin or a signal comes.
This is the command to register in an MCP client. All clients of one configuration share one
set of servers, in a background process (the hub) that the first client starts. With --http it serves many clients over
Streamable HTTP at /mcp instead: on the loopback interface and with a token by default.

      --no-hub              start servers of its own for this client
      --http [HOST:]PORT    serve HTTP; without HOST on both loopback addresses
      --stdio               with --http: also serve stdin and stdout
      --no-auth             require no token; only on loopback addresses
      --allowed-host HOST   accept this Host header too, with its port; repeatable.
                            Required for addresses that other machines can reach
      --allowed-origin URL  accept this Origin header too; repeatable
      --tls-cert FILE, --tls-key FILE   serve HTTPS with these PEM files

Examples:
  trunkline
  trunkline serve --config ~/servers.yaml -v --log-file ~/trunkline.log
  trunkline --http 7411`,

  schema: `Usage: trunkline schema [--out FILE]

Prints the JSON Schema of the configuration, with which editors complete keys, describe them
and mark mistakes. With --out, writes the schema to a file, and says which line of the
configuration refers to it.

Examples:
  trunkline schema > trunkline.schema.json
  trunkline schema --out ~/.config/trunkline/trunkline.schema.json`,

  token: `Usage: trunkline token

Prints the bearer token for clients of \`trunkline serve --http\`, and creates the token if
there is none. The token is stored in a file that only you can read.`,

  approve: `Usage: trunkline approve [SERVER [TOOL…]] [OPTIONS]

For servers with \`approval: required\`: starts them once and shows each tool that is new or
has changed since its approval, as a model would see it. Removed lines are marked with -,
added lines with +. Asks for each tool whether to approve it. Without a terminal it approves
nothing, unless --yes is given. A running Trunkline offers approved tools at once.

Examples:
  trunkline approve
  trunkline approve files read_text_file
  trunkline approve files --yes`,

  install: `Usage: trunkline install [SERVER…] [OPTIONS]

Installs the missing packages of all servers, or of the named servers. Installs the versions
in trunkline.lock, next to the configuration; packages that are not locked are installed in
the newest version that the configuration accepts, and locked. A second run changes nothing. Servers also install missing
packages when they start; use this command to do it in advance, for example before going
offline.

Examples:
  trunkline install
  trunkline install --config ~/servers.yaml`,

  update: `Usage: trunkline update [NAME] [OPTIONS]

Installs the newest version of every package without a fixed version in the configuration,
or only of the named server or package. With a range or a tag, it is the newest version that
the range or the tag accepts. Starts the old and the new version once, reports which tools
were added (+), removed (-) or changed (~), and locks the new version. A package that cannot
be installed or started stays at its version. Restart Trunkline to use the new versions.

Examples:
  trunkline update
  trunkline update files`,

  outdated: `Usage: trunkline outdated [OPTIONS]

Lists the packages of all servers: the installed version, the version that \`trunkline
update\` would install, the newest version, and whether the package is in node_modules
next to the configuration or in Trunkline's own store.

Example:
  trunkline outdated`,

  connect: `Usage: trunkline connect CLIENT…|--all [OPTIONS]

Registers Trunkline with clients, for all projects: adds an entry \`trunkline\` to the file in
which a client keeps its servers, and changes nothing else in it. With --config, clients use
that configuration. Makes a backup beside the file. The client's other servers stay. Without a
name, says which clients are installed. Restart a client afterwards.

Examples:
  trunkline connect claude-desktop cursor
  trunkline connect --all --dry-run
  trunkline connect codex --config ~/servers.yaml`,

  disconnect: `Usage: trunkline disconnect CLIENT…|--all [OPTIONS]

Removes Trunkline from clients. Makes a backup beside each file.

Example:
  trunkline disconnect cursor`,

  undo: `Usage: trunkline undo [CLIENT…|--all] [OPTIONS]

Takes back what the last \`connect\` or \`disconnect\` has changed, or the last one for each of the
named clients. A file that nobody has changed since becomes byte for byte what it was; in
every other file only Trunkline's entry changes.

Examples:
  trunkline undo
  trunkline undo cursor`,

  check: `Usage: trunkline check [SERVER…] [OPTIONS]

Checks the configuration and starts every server, or the named servers, once. Shows the
time to ready and the number of listed, quarantined and denied tools. For each server that
fails, shows the cause, its last output, and what to do.

Examples:
  trunkline check
  trunkline check files memory --config ~/servers.yaml`,

  tools: `Usage: trunkline tools [SERVER…] [OPTIONS]

Lists the tools of all servers, or of the named servers, as a client sees them, and the
server of each tool. Also lists the quarantined tools, with the reason. Uses the hub if it
runs; otherwise starts the servers for this list.

Examples:
  trunkline tools
  trunkline tools files
  trunkline tools --json | jq -r '.tools[].name'`,

  status: `Usage: trunkline status [OPTIONS]

Shows the status of the running hub: which servers have a problem, why, and what to do. With
--watch, redraws it every second on a terminal; elsewhere writes it again at each change.

Examples:
  trunkline status
  trunkline status --watch
  trunkline status --json | jq .servers`,

  ps: `Usage: trunkline ps [OPTIONS]

Lists the hub of the configuration, the clients that it serves, and the processes of its
servers with what they use.

Examples:
  trunkline ps
  trunkline ps --json | jq '.hub.clients[].name'`,

  logs: `Usage: trunkline logs [SERVER] [OPTIONS]

Prints the log of the hub, the oldest records first, also when no hub runs. With SERVER: the
last output of that server, and only the records about it. On a terminal the records are
text; elsewhere they are JSON, one on a line.

Examples:
  trunkline logs -f
  trunkline logs files`,

  restart: `Usage: trunkline restart SERVER [OPTIONS]

Restarts a server of the running hub. Its calls in flight fail, and what it had in memory is
lost. Clients stay connected.

Example:
  trunkline restart files`,

  stop: `Usage: trunkline stop [OPTIONS]

Stops the hub of the configuration and its servers; the same as \`trunkline hub stop\`. Clients
stay connected: each starts a hub again when it has something to send.

Examples:
  trunkline stop
  trunkline stop --all`,

  hub: `Usage: trunkline hub status|stop|restart [OPTIONS]

The hub is the background process that runs the servers for all clients of a configuration.
  status   shows whether it runs, its version, and earlier hubs that still serve clients
  stop     stops it and its servers
  restart  starts another hub, as after an update of Trunkline. Clients move to it as soon as
           nothing of theirs is in flight

Examples:
  trunkline hub status
  trunkline hub restart`,

  call: `Usage: trunkline call NAME [JSON] [OPTIONS]

Calls one tool and prints its result: text as text, everything else as JSON. The arguments
are a JSON object; \`-\` reads it from stdin. The message of a failed tool goes to stderr.
Uses the hub if it runs; otherwise starts the server for this call.

Examples:
  trunkline call trunkline__status
  trunkline call files__read_text_file '{"path": "notes.txt"}'
  trunkline call memory__create_entities - < entities.json
  trunkline call files__list_directory '{"path": "."}' --json`,
};

const ALONE_OPTION = '      --alone         start servers for this command, also if the hub runs';
const ALL_OPTION = '      --all           with stop: every hub of yours, whatever its configuration';
const JSON_OPTION = '      --json          print the result as JSON';

const EVERY_CLIENT = '      --all           every client that is installed here';
const DRY_RUN = '      --dry-run       show what would change, and change nothing';

const OWN_OPTIONS: Partial<Readonly<Record<Command, readonly string[]>>> = {
  tools: [JSON_OPTION, ALONE_OPTION],
  call: [JSON_OPTION, ALONE_OPTION],
  status: [JSON_OPTION, '      --watch         show the status again when it changes'],
  ps: [JSON_OPTION],
  logs: ['  -f, --follow        go on with what is logged from now on'],
  stop: [ALL_OPTION],
  hub: ['      --json          with status: print it as JSON', ALL_OPTION],
  connect: [EVERY_CLIENT, DRY_RUN, JSON_OPTION],
  disconnect: [EVERY_CLIENT, DRY_RUN],
  undo: [EVERY_CLIENT],
  schema: ['      --out FILE      write the schema to this file'],
  approve: ['  -y, --yes           approve without asking'],
};

const OPTIONS = `  -c, --config FILE   use this configuration
  -v, -vv             log more to stderr: events, or everything
      --log-file FILE append the log to this file instead
      --version       print the version
  -h, --help          print this help`;

const EXIT_CODES = `Exit codes:
  0   all servers and calls succeeded
  1   a server, the call or a change failed, or a tool is not approved
  2   the command line or the configuration has a mistake
  3   no hub runs: status, ps, logs, restart, hub status and hub restart need one
  70  a bug in Trunkline
  When a signal ends a command other than serve: 128 plus the number of the signal.`;
