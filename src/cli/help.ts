export const COMMANDS = [
  'serve',
  'check',
  'tools',
  'call',
  'approve',
  'install',
  'update',
  'outdated',
  'token',
] as const;
export type Command = (typeof COMMANDS)[number];

export function isCommand(word: string): word is Command {
  return (COMMANDS as readonly string[]).includes(word);
}

/** What `--help` shows: about one command, or about the whole. */
export function helpText(command: Command | undefined): string {
  const about = command === undefined ? OVERVIEW : DETAILS[command];
  const own = command === undefined ? [] : (OWN_OPTIONS[command] ?? []);
  return [about, `Options:\n${[...own, OPTIONS].join('\n')}`, EXIT_CODES].join('\n\n');
}

const OVERVIEW = `Trunkline is one MCP server that stands for all the others: it runs your stdio MCP
servers as supervised children and shows one merged toolset.

Usage:
  trunkline [serve]              serve an MCP client over stdin and stdout
  trunkline check [SERVER…]      start every server once and tell how that went
  trunkline tools [SERVER…]      list all tools and whose they are
  trunkline call NAME [JSON]     call one tool and print its result
  trunkline approve [SERVER]     show tools that are new or have changed, and approve them
  trunkline install [SERVER…]    install the packages that are missing
  trunkline update [NAME]        move packages to their newest versions, and tell what changes
  trunkline outdated             list the versions that are installed, and the newest
  trunkline token                print the token that HTTP clients need
  trunkline help [COMMAND]       tell more about a command

Examples:
  trunkline check
  trunkline tools files
  trunkline call files__read_text_file '{"path": "notes.txt"}'
  trunkline --config ~/servers.yaml

Without --config, the file is trunkline.yaml in the current folder, or else in your
configuration folder; the variable TRUNKLINE_CONFIG may name another one.`;

const DETAILS: Readonly<Record<Command, string>> = {
  serve: `Usage: trunkline [serve] [OPTIONS]

Serves an MCP client over stdin and stdout until it closes stdin or a signal comes.
This is the command to register with a client. With --http it serves many clients over
Streamable HTTP at /mcp instead, on loopback and with a token unless told otherwise.

      --http [HOST:]PORT    serve HTTP; without HOST on both loopback addresses
      --stdio               with --http: serve stdin and stdout as well
      --no-auth             ask for no token; on loopback only
      --allowed-host HOST   a further Host header to accept, with its port; repeatable.
                            Needed to listen where others can reach it
      --allowed-origin URL  a further Origin to accept; repeatable
      --tls-cert FILE, --tls-key FILE   serve HTTPS with these PEM files

Examples:
  trunkline
  trunkline serve --config ~/servers.yaml -v --log-file ~/trunkline.log
  trunkline --http 7411`,

  token: `Usage: trunkline token

Prints the bearer token that clients of \`trunkline serve --http\` need, and makes one if
there is none yet. It is kept in a file that only you can read.`,

  approve: `Usage: trunkline approve [SERVER [TOOL…]] [OPTIONS]

For servers with \`approval: required\`: starts them once and shows each tool that is new or
has changed since it was approved in full, as a model would see it, lines that are gone
marked with - and new ones with +. Asks about each whether to approve it. Where there is no
terminal nothing is approved, unless --yes is given. A Trunkline that runs shows what was
approved at once.

Examples:
  trunkline approve
  trunkline approve files read_text_file
  trunkline approve files --yes`,

  install: `Usage: trunkline install [SERVER…] [OPTIONS]

Installs the packages of all servers (or of those named) that are not there yet, as
trunkline.lock beside the configuration says, or their newest versions, which are then
locked. Doing so again changes nothing. Servers install what they lack themselves when they
are started; this does it ahead, for a place without a network for one.

Examples:
  trunkline install
  trunkline install --config ~/servers.yaml`,

  update: `Usage: trunkline update [NAME] [OPTIONS]

Installs the newest version of every package that the configuration names without one (or
of that server's or package's alone), starts the old and the new one once, tells which tools
were added (+), removed (-) or changed (~), and locks the new one. One that cannot be
installed or started stays as it is. Trunkline has to be started anew to use it.

Examples:
  trunkline update
  trunkline update files`,

  outdated: `Usage: trunkline outdated [OPTIONS]

Lists the packages of all servers: the version that is installed, the newest one, and
whether it is in node_modules or in Trunkline's own store.

Example:
  trunkline outdated`,

  check: `Usage: trunkline check [SERVER…] [OPTIONS]

Checks the configuration, starts every server (or those named) once, and tells how that
went: time to ready, tools shown, quarantined and denied, and for each server that failed
why, what it said last, and what to try.

Examples:
  trunkline check
  trunkline check files memory --config ~/servers.yaml`,

  tools: `Usage: trunkline tools [SERVER…] [OPTIONS]

Lists the tools of every server (or of those named) as a client sees them, with the server
that each belongs to; and the tools that are not shown, with the reason.

Examples:
  trunkline tools
  trunkline tools files
  trunkline tools --json | jq -r '.tools[].name'`,

  call: `Usage: trunkline call NAME [JSON] [OPTIONS]

Calls one tool and prints its result: text as text, everything else as JSON. The arguments
are a JSON object; \`-\` reads it from stdin. What a tool says about its failure goes to
stderr.

Examples:
  trunkline call trunkline__status
  trunkline call files__read_text_file '{"path": "notes.txt"}'
  trunkline call memory__create_entities - < entities.json
  trunkline call files__list_directory '{"path": "."}' --json`,
};

const JSON_OPTION = '      --json          print the result as it came, as JSON';

const OWN_OPTIONS: Partial<Readonly<Record<Command, readonly string[]>>> = {
  tools: [JSON_OPTION],
  call: [JSON_OPTION],
  approve: ['  -y, --yes           approve without asking'],
};

const OPTIONS = `  -c, --config FILE   use this configuration
  -v, -vv             log more to stderr: what happens, or everything
      --log-file FILE append the log to a file instead
      --version       print the version
  -h, --help          print this`;

const EXIT_CODES = `Exit codes:
  0   all is well
  1   a server or the call failed, or a tool was not approved
  2   the command line or the configuration cannot be used
  70  a bug in Trunkline
  A check, tools or call that a signal ends exits with 128 and the signal's number.`;
