import { Argument, type Command, CommanderError, Option } from 'commander';
import { EXIT, UsageError } from '../host/errors/usage-error.js';
import { VERSION } from '../version.js';
import { CliCommand, EXIT_CODES, heading, indented } from './command.js';
import { SERVE_OPTIONS, type ServeOption } from './commands/serve/serve-options.js';
import { flushed, isQuietWanted, print, tell } from './output.js';

/** The most columns of a line that is easy to read. */
const MAX_WIDTH = 100;
const DEFAULT_WIDTH = 80;

/** The command line of Trunkline. The work of the commands is not loaded yet. */
export function createProgram(): CliCommand {
  const program = new CliCommand('trunkline');
  program
    .description(
      `Trunkline is one MCP server in front of all your others: it runs your stdio MCP servers as supervised processes and offers their tools as one list. Without a command, it serves an MCP client over stdin and stdout.

Without --config, Trunkline uses the file named by the variable TRUNKLINE_CONFIG, or trunkline.yaml in the current folder, or trunkline.yaml in your configuration folder. Serving searches the current folder only if stdin is a terminal, because a client may open a folder whose configuration a stranger has written.`,
    )
    .option('-c, --config <FILE>', 'use this configuration')
    .option('-v, --verbose', 'log events to stderr; -vv logs everything', (_, earlier: number) => earlier + 1, 0)
    .option('--log-file <FILE>', 'append the log to this file instead')
    .option('-q, --quiet', 'print results, warnings and failures only, and nothing about success; not for serve')
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .example('trunkline check', 'trunkline tools files', 'trunkline call files.read_text_file path=notes.txt')
    .example('trunkline --config ~/servers.yaml')
    .addHelpText('afterAll', () => `\n${heading('Exit codes:')}\n${indented(EXIT_CODES)}`)
    .configureHelp({ showGlobalOptions: true, styleTitle: heading, subcommandTerm })
    .configureOutput({
      getOutHelpWidth: () => Math.min(process.stdout.columns || DEFAULT_WIDTH, MAX_WIDTH),
      writeErr: (text) => tell(text.trimEnd()),
      outputError: (text, write) => write(text.replace(/^error: /, 'trunkline: ')),
    })
    .exitOverride();
  // In the order of the overview.
  const groups = [
    addServing,
    addTools,
    addRunning,
    addMessages,
    addConfiguration,
    addLogins,
    addClients,
    addPackages,
    addSetup,
  ];
  for (const add of groups) add(program);
  return program;
}

/** A command in a list of commands: without `[options]`, which all have. */
function subcommandTerm(command: Command): string {
  return `${command.name()} ${command.usage().replace('[options]', '').trim()}`.trimEnd();
}

/** Runs a command other than serving, and returns the exit code. */
export async function runProgram(args: readonly string[]): Promise<number> {
  const program = createProgram();
  const end = args.indexOf('--');
  if (end >= 0) program.behind = args.slice(end + 1);
  try {
    await program.parseAsync(args, { from: 'user' });
    return program.exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // The help and the version end the program with 0, a mistake with 1.
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  } finally {
    await flushed();
  }
}

function addServing(program: CliCommand): void {
  program.commandsGroup('Serving clients:');
  const serve = program
    .command('serve', { isDefault: true })
    .allowExcessArguments()
    .summary('serve an MCP client over stdin and stdout')
    .description(
      `Serves an MCP client over stdin and stdout until the client closes stdin or a signal comes. This is the command to register in an MCP client. The servers run in a background process (the hub), which the first client starts, all clients of the configuration share, and \`trunkline stop\` ends. With --no-hub, or \`gateway: { hub: off }\` in the configuration, a client starts servers of its own. With --http it serves many clients over Streamable HTTP at /mcp instead: on the loopback interface and with a token by default.`,
    )
    .example('trunkline', 'trunkline serve --config ~/servers.yaml -v --log-file ~/trunkline.log')
    .example('trunkline --http 7411')
    .runs(async () => async ({ words: [word] }) => {
      if (word !== undefined && program.args[0] !== 'serve') program.refuse(word);
      if (word !== undefined)
        throw new UsageError('`trunkline serve` takes no arguments', 'see `trunkline serve --help`');
      // The log is the only output of serving for the user.
      if (isQuietWanted())
        throw new UsageError('`trunkline serve` takes no `--quiet`', 'without `-v` it logs warnings and errors only');
      // `main` has served every valid command line, so `parseArgs` misses the value of an option on this one.
      throw new UsageError('the value of an option begins with `-`', 'write `--OPTION=VALUE`');
    });
  for (const [name, { value, about }] of Object.entries<ServeOption>(SERVE_OPTIONS))
    serve.option(`--${name}${value === undefined ? '' : ` <${value}>`}`, about);
  program
    .command('drain')
    .argument(
      '[URL]',
      'the URL or the pid of one gateway, such as http://localhost:7411; without it, all of the configuration',
    )
    .summary('end a gateway that serves HTTP after its calls')
    .description(
      `Ends the gateways on this machine that serve the configuration over HTTP, as SIGTERM does, and waits until they have ended. A draining gateway answers /readyz with 503, so that a proxy chooses another one. It accepts connections for 10 s at most, finishes the calls in flight within \`gateway: { drain: 60s }\`, and then ends with its servers. Ctrl-C ends the wait and not the drain.`,
    )
    .option('--json', 'print the gateways as JSON')
    .example('trunkline drain', 'trunkline drain http://localhost:7411')
    .runs(async () => (await import('./commands/serve/drain.js')).drain);
  program
    .command('cluster')
    .summary('show the gateways of a cluster')
    .description('A cluster is several gateways that serve each user at one of them, with `gateway: { cluster: … }`.')
    .example('trunkline cluster status')
    .command('status')
    .summary('show the gateways of the cluster, and whether its store answers')
    .description(
      'Shows the gateways of the cluster, as the gateway on this machine knows them: the address, the state, the version and the load of each, which is the number of users and sessions that it serves. Also says whether the store answers, and what to do otherwise. Needs the configuration and the variables of the gateway, and no store.',
    )
    .option('--json', 'print the gateways as JSON')
    .example('trunkline cluster status', 'trunkline cluster status --json')
    .runs(async () => (await import('./commands/serve/cluster-status.js')).clusterStatus);
}

function addTools(program: CliCommand): void {
  program.commandsGroup('Servers and their tools:');
  program
    .command('check')
    .argument('[SERVER...]', 'keys of servers; without them, all servers')
    .summary('start every server once and report problems')
    .description(
      'Checks the configuration and starts every server, or the named servers, once. Shows the time to ready and the number of listed, quarantined and denied tools. For each server that fails, shows the cause, its last output, and what to do.',
    )
    .option('--user <NAME>', 'start the servers as this user, with the variables below `gateway.http.auth.variables`')
    .option(...MACHINE)
    .option('--json', 'print the result as JSON')
    .example('trunkline check', 'trunkline check files memory --config ~/servers.yaml')
    .example('trunkline check --user ann@example.com', 'trunkline check --user ci --machine')
    .example(`trunkline check --json | jq '.servers[] | select(.state != "ready")'`)
    .runs(async () => (await import('./commands/config/check.js')).check);
  program
    .command('tools')
    .argument('[SERVER...]', 'keys of servers; without them, all servers')
    .summary('list the tools of all servers')
    .description(
      'Lists the tools of all servers, or of the named servers, as a client sees them, and the server of each tool. Also lists the quarantined tools, with the reason. Uses the running gateway if there is one; otherwise starts the servers for this list.',
    )
    .option('--json', 'print the list as a client gets it; with --sort, the sizes and the advice')
    .addOption(
      new Option('--sort <KEY>', 'show the sizes, the largest first, and how to save tokens').choices(['size']),
    )
    .option('--view <NAME>', 'as a client with this view sees it')
    .option('--alone', 'start servers for this list, also if a gateway runs')
    .option(...GATEWAY)
    .example(
      'trunkline tools',
      'trunkline tools files',
      'trunkline tools --sort size',
      `trunkline tools --json | jq -r '.tools[].name'`,
    )
    .runs(async () => (await import('./commands/calls/tools.js')).tools);
  program
    .command('find')
    .argument('[WORDS...]', 'what has to be done, in a few words, or the name of a tool')
    .summary('search the tools of all servers')
    .description(
      'Prints the tools that fit best to the words, the best first: the name and the arguments, as `trunkline call` takes them, and the first sentence of the description. Ranks them as search mode does. Uses the running gateway if there is one; otherwise starts the servers once. The exit code is 1 if no tool fits.',
    )
    .option('--server <KEY>', 'search this server only; without WORDS, list its tools')
    .option('--limit <N>', 'print at most so many tools; default: 8, at most 50')
    .option('--json', 'print the tools as JSON')
    .option('--view <NAME>', 'as a client with this view sees them')
    .option('--alone', 'start servers for this search, also if a gateway runs')
    .option(...HUB)
    .option(...GATEWAY)
    .example('trunkline find read a file', 'trunkline find --server files', 'trunkline find issue --limit 3 --json')
    .runs(async () => (await import('./commands/calls/find.js')).find);
  program
    .command('describe')
    .argument('<TOOL...>', 'names of tools, as `trunkline find` prints them, or SERVER.TOOL')
    .summary('show what a tool does, and its arguments')
    .description(
      'Prints the arguments of each tool as `trunkline call` takes them, with the texts of its server: required arguments first, optional ones in brackets, and `...` after one that may be given several times. Uses the running gateway if there is one; otherwise starts the servers of the tools. The exit code is 4 if a tool is unknown.',
    )
    .option('--json', 'print the definitions with their schemas, as a client gets them')
    .option('--view <NAME>', 'as a client with this view sees them')
    .option('--alone', 'start servers for this command, also if a gateway runs')
    .option(...HUB)
    .option(...GATEWAY)
    .example('trunkline describe files.read_text_file', 'trunkline describe files__read_text_file --json')
    .runs(async () => (await import('./commands/calls/find.js')).describe);
  program
    .command('skill')
    .summary('write a skill with which an agent uses the tools from its shell')
    .description(
      `Prints a SKILL.md for agents that run commands: which servers there are, and how to find, describe and call their tools. It has at most 4 kB. With --install, writes it to the folder in which the agent looks for the skills of its user. A file that this command has not written stays, unless --force is given. Run it again when servers come or go.`,
    )
    .option('--install <CLIENT>', 'write it for claude, codex, copilot, cursor, gemini or opencode')
    .option('--remove <CLIENT>', 'remove the file that --install has written')
    .option('--force', 'replace a file that this command has not written')
    .option('--json', 'print the text, or the file and what became of it, as JSON')
    .option('--view <NAME>', 'for the tools of this view')
    .option('--alone', 'start servers for this command, also if a gateway runs')
    .option(...HUB)
    .option(...GATEWAY)
    .example('trunkline skill > SKILL.md', 'trunkline skill --install claude', 'trunkline skill --remove claude')
    .runs(async () => (await import('./commands/calls/skill.js')).skill);
  program
    .command('call')
    .argument('<TOOL>', 'the name of the tool, as `trunkline tools` lists it, or SERVER.TOOL')
    .argument('[ARGUMENT...]', 'KEY=TEXT, KEY:=JSON, or one JSON object; - reads the object from stdin')
    .summary('call one tool and print its result')
    .description(
      `Calls one tool and prints its result: text as text, everything else as JSON. With --quiet, prints text alone. The message of a failed tool goes to stderr. Uses the running gateway if there is one; otherwise starts the server for this call.

KEY=TEXT passes text, or a number, true, false, an array or an object where the tool asks for one. The same KEY several times makes an array. KEY:=JSON passes the JSON value as it is.

The exit code tells how the call ended: 1 the tool reports an error, 2 the command line has a mistake, 4 the tool is unknown, 5 a rule denies the call, 6 the tool is not approved, 7 its server needs a login, 8 its server could not take the call, which was not sent, 9 no answer came in time, 10 the answer was lost. After 9 and 10, the call may have taken effect.`,
    )
    .option('--json', 'print the result as the server sent it')
    .option('--view <NAME>', 'as a client with this view sees it')
    .option('--alone', 'start a server for this call, also if a gateway runs')
    .option(...HUB)
    .option(...GATEWAY)
    .example('trunkline call trunkline__status')
    .example('trunkline call files.read_text_file path=notes.txt head:=5')
    .example(`trunkline call files__read_text_file '{"path": "notes.txt"}'`)
    .example('trunkline call memory__create_entities - < entities.json')
    .example(`trunkline call files__list_directory '{"path": "."}' --json`)
    .runs(async () => (await import('./commands/calls/call-tool.js')).call);
  program
    .command('sandbox')
    .argument('<SERVER>', 'key of a server')
    .argument('[CALL...]', 'with --try: a tool of the server to call, and its arguments, as for `trunkline call`')
    .summary('show what is open for a confined server')
    .description(
      'Shows what a server with `sandbox` may read, write and reach, and why; for another server, what it would see with `sandbox: true`. With --try, starts the server once and calls the tool, if one is named: all names of the network are allowed, and what the server writes goes to copies that are deleted. Then proposes an entry that allows what the server has used. Nothing is changed.',
    )
    .option('--try', 'run the server once, and propose an entry')
    .option('--json', 'print the result as JSON')
    .example('trunkline sandbox files', 'trunkline sandbox github --try search_repositories query=mcp')
    .runs(async () => (await import('./commands/config/sandbox.js')).sandbox);
  program
    .command('rules')
    .summary('try the rules on calls')
    .description('Rules of the configuration decide which calls, resources and prompts a client may use.')
    .example(`trunkline rules test github.push repo=acme/app`)
    .command('test')
    .argument('<TOOL>', 'the tool, as `trunkline tools` lists it, or SERVER.TOOL')
    .argument('[ARGUMENT...]', 'its arguments, as for `trunkline call`')
    .summary('show which rule decides about a call')
    .description(
      'Shows whether the rules of the configuration allow or deny a call with these arguments, or ask a person, and which rule decides. Starts no server and calls nothing. The exit code is 1 unless the call is allowed.',
    )
    .option('--view <NAME>', 'for a client with this view')
    .option('--prompt', 'TOOL is a prompt')
    .option('--uri <URI>', 'for reading this resource; TOOL is the key of its server')
    .option('--json', 'print the decision as JSON')
    .example('trunkline rules test github.push repo=acme/app')
    .example(`trunkline rules test files__read_text_file '{"path": "/etc/passwd"}' --view work`)
    .example('trunkline rules test files --uri file:///etc/passwd')
    .runs(async () => (await import('./commands/config/test-rules.js')).testRules);
  program
    .command('approve')
    .argument('[SERVER]', 'key of a server; without it, all servers that require approval')
    .argument('[TOOL...]', 'names of its tools; without them, all that wait for approval')
    .summary('review new and changed tools, and approve them')
    .description(
      'For servers with `approval: required`: starts them once and shows each tool that is new or has changed since its approval, as a model would see it. Removed lines are marked with -, added lines with +. Asks for each tool whether to approve it. Without a terminal it approves nothing, unless --yes is given. A running Trunkline offers approved tools at once.',
    )
    .option('-y, --yes', 'approve without asking')
    .option('--json', 'print the tools as JSON, and ask nothing; with --yes, also approve')
    .example('trunkline approve', 'trunkline approve files read_text_file', 'trunkline approve files --yes')
    .runs(async () => (await import('./commands/config/approve.js')).approve);
}

function addRunning(program: CliCommand): void {
  program.commandsGroup('What runs now:');
  program
    .command('list')
    .summary('list the servers of the configuration, and what is known of them')
    .description(
      'Lists every server of the configuration, also the disabled ones: its state, version and number of tools, and where it comes from. Asks the running gateway, or else reads what earlier runs have left. Starts nothing.',
    )
    .option('--json', 'print the list as JSON')
    .option(...GATEWAY)
    .example('trunkline list', `trunkline list --json | jq -r '.servers[] | select(.state == "disabled").server'`)
    .runs(async () => (await import('./commands/config/list.js')).list);
  program
    .command('status')
    .argument('[SERVER]', 'key of a server, to show everything about it')
    .summary('show what is wrong with the running servers, and what to do')
    .description(
      `Shows the status of the running gateway: which servers have a problem, why, and what to do. With SERVER: everything about that server, as the tool trunkline__status shows it.

The gateway is the hub of the configuration, or else a gateway over HTTP, or else one that serves a client on stdin. If several run, the command says which one it shows, and --gateway names another.

With --watch, a terminal shows the servers with their state, calls per second, median latency, memory and last error, and the clients. Keys: arrows choose a server, r restarts it, l shows its last output, a says how to approve its tools, q quits. Elsewhere, --watch writes the status again at each change.`,
    )
    .option('--json', 'print the status as JSON')
    .option('--watch', 'go on until q or Ctrl-C, and show what changes')
    .option(...GATEWAY)
    .example('trunkline status', 'trunkline status files', 'trunkline status --gateway http://localhost:7411')
    .example('trunkline status --watch', 'trunkline status --json | jq .servers')
    .runs(async () => (await import('./commands/hub/show-status.js')).status);
  program
    .command('web')
    .summary('show the running servers, calls and tools in the browser')
    .description(
      `Serves a page about the running gateway at 127.0.0.1 until Ctrl-C, and opens it in the browser: what needs attention, servers, calls, tools, clients, logins and recordings. Works without a gateway, too, and finds the one that starts later. The printed URL opens one session, within a minute. A page without a session makes the command print another URL.`,
    )
    .option('--port <N>', 'listen on this port instead of a free one, for example to forward it with ssh')
    .option('--no-open', 'print the URL, and do not open the browser')
    .option('--read-only', 'refuse all changes')
    .option(...GATEWAY)
    .example('trunkline web', 'trunkline web --port 7412 --no-open --read-only')
    .runs(async () => (await import('./commands/web/web.js')).web);
  program
    .command('metrics')
    .summary('print the metrics of the running gateway, for Prometheus')
    .description(
      'Prints the metrics of the running gateway in the text format of Prometheus, such as for a collector that reads files. The setting `gateway: { metrics: { listen: 127.0.0.1:9464 } }` serves them at http://127.0.0.1:9464/metrics, and `trunkline serve --http` at /metrics, with the token.',
    )
    .option(...GATEWAY)
    .example('trunkline metrics', 'trunkline metrics > /var/lib/node_exporter/trunkline.prom')
    .runs(async () => (await import('./commands/hub/show-status.js')).metrics);
  program
    .command('ps')
    .summary('list the gateway, its clients and the processes of its servers')
    .description(
      'Lists the gateway of the configuration, the clients that it serves, and the processes of its servers with their memory and processor time. With --all: every process of Trunkline of this user, with its configuration, and whether that file still exists.',
    )
    .option('--all', 'every hub, every other gateway, and the processes that clients start')
    .option('--json', 'print the lists as JSON')
    .option(...GATEWAY)
    .example('trunkline ps', 'trunkline ps --all', `trunkline ps --json | jq '.hub.clients[].name'`)
    .runs(async () => (await import('./commands/hub/show-status.js')).ps);
  program
    .command('logs')
    .argument('[SERVER]', 'key of a server, to print only the records about it')
    .summary('print the log of the gateway, or the records about one server')
    .description(
      'Prints the log of the gateway, the oldest records first. Without a gateway, the log of the last hub. Of a gateway that logs to stderr, the latest records. With SERVER: the last output of that server, and only the records about it. With --json the records are JSON, one on a line.',
    )
    .option('-f, --follow', 'go on with new records')
    .option('--json', 'print the records as JSON')
    .option(...GATEWAY)
    .example('trunkline logs -f', 'trunkline logs files')
    .runs(async () => (await import('./commands/hub/logs.js')).logs);
  program
    .command('restart')
    .argument('<SERVER>', 'key of the server')
    .summary('restart a running server')
    .description(
      'Restarts a server of the running gateway. Its calls in flight fail, and its data in memory is lost. Clients stay connected. The server keeps the version of its package that the gateway has read; the command says so if `trunkline update` has installed another one.',
    )
    .option('--json', 'print the result as JSON')
    .option(...GATEWAY)
    .example('trunkline restart files')
    .runs(async () => (await import('./commands/hub/show-status.js')).restartServer);
  program
    .command('allow')
    .argument('[ID]', 'the id of the call; without it, all calls that wait are shown')
    .summary('let a call pass that waits for a person')
    .description(
      'Lets a call pass for which a rule says `then: ask`. The yes is for this call as it was shown, once. If the call has ended meanwhile, the same call of the same client passes within two minutes. Without ID: shows the calls that wait, with their ids.',
    )
    .option('--json', 'print the result as JSON')
    .option(...GATEWAY)
    .example('trunkline allow', 'trunkline allow k7wq2m9x')
    .runs(async () => (await import('./commands/hub/answer-question.js')).allowCall);
  program
    .command('deny')
    .argument('<ID>', 'the id of the call, as `trunkline allow` shows it')
    .summary('refuse a call that waits for a person')
    .description('Refuses a call for which a rule says `then: ask`. Its client learns that a person said no.')
    .option('--json', 'print the result as JSON')
    .option(...GATEWAY)
    .example('trunkline deny k7wq2m9x')
    .runs(async () => (await import('./commands/hub/answer-question.js')).denyCall);
  addStop(program, 'stop the hub, or the gateway over HTTP, and its servers', '; the same as `trunkline hub stop`');
  const hub = program
    .command('hub')
    .summary('show, stop or restart the hub itself')
    .description('The hub is the background process that runs the servers for all clients of a configuration.')
    .example('trunkline hub status', 'trunkline hub restart');
  hub
    .command('status')
    .summary('show whether it runs, its version, and earlier hubs that still serve clients')
    .description('Shows whether the hub runs, its version, and earlier hubs that still serve clients.')
    .option('--json', 'print it as JSON')
    .example('trunkline hub status')
    .runs(async () => (await import('./commands/hub/show-status.js')).hubStatus);
  addStop(hub, 'stop it and its servers', '');
  hub
    .command('restart')
    .summary('start another hub, as after an update of Trunkline')
    .description(
      'Starts another hub, as after an update of Trunkline. Each client moves to it as soon as the client has no call in flight.',
    )
    .option('--json', 'print the result as JSON')
    .example('trunkline hub restart')
    .runs(async () => (await import('./commands/hub/end-hub.js')).restartHub);
}

function addMessages(program: CliCommand): void {
  program.commandsGroup('Calls and messages:');
  program
    .command('activity')
    .summary('show the log of calls')
    .description(
      'Shows the call log: one line for each call, with the client, the server, the tool, the outcome, the time and the sizes. The log has no arguments and results. The setting `gateway: { callLog: full }` adds them, which --json shows; `off` turns the log off.',
    )
    .option('-f, --follow', 'go on with the calls from now on')
    .option('--server <SERVER>', 'show only the calls of this server')
    .option('--json', 'print the log as it is')
    .example('trunkline activity -f', 'trunkline activity --server files --json')
    .runs(async () => (await import('./commands/hub/logs.js')).activity);
  program
    .command('inspect')
    .argument('[FILE]', 'a recording; without it, the messages of the running gateway as they pass')
    .summary('show the messages of a recording, or of the gateway as they pass')
    .description(
      'Shows the messages of a recording, one on a line; without FILE, the messages of the running gateway as they pass. On a terminal, lines are cut to its width.',
    )
    .option('-f, --follow', 'go on with new messages')
    .option('--server <SERVER>', 'show only the messages of this server')
    .option('--json', 'print the messages as they are recorded')
    .option(...GATEWAY)
    .example('trunkline inspect', 'trunkline inspect session.jsonl --server files')
    .runs(async () => (await import('./commands/calls/inspect.js')).inspect);
  program
    .command('record')
    .summary('record all messages of the gateway')
    .description(
      'Records all messages of the running gateway, between clients and Trunkline and between Trunkline and servers, until Ctrl-C. Known secrets are replaced by [redacted]. To record from the first message on, use the setting `gateway: { record: FILE }` or `trunkline serve --record FILE`.',
    )
    .requiredOption('-o, --out <FILE>', 'write to this file')
    .option('--max <SIZE>', 'keep the newest messages, SIZE in all (100MiB)')
    .option('--json', 'at the end, print the counts as JSON')
    .option(...GATEWAY)
    .example('trunkline record -o session.jsonl')
    .runs(async () => (await import('./commands/calls/record.js')).record);
  program
    .command('replay')
    .argument('<FILE>', 'a recording')
    .summary('replay a recording as a server or as its clients')
    .description(
      'With --as-server: serves stdin and stdout as an MCP server, with the recorded answers of this server. With --as-client: starts the configured servers, sends the recorded messages of the clients, compares the answers, and exits with 1 if any differs. The servers execute the recorded calls again, so whatever a call writes, sends or deletes happens again.',
    )
    .option('--as-server <SERVER>', 'stand in for this server')
    .option('--as-client', 'send the recorded messages of the clients, and compare the answers')
    .option('--ignore <MEMBERS>', 'with --as-client: members with these names, separated by commas, may differ')
    .option('--json', 'with --as-client: print the differences as JSON')
    .example('trunkline replay session.jsonl --as-server files')
    .example('trunkline replay session.jsonl --as-client --ignore requestTime')
    .runs(async () => (await import('./commands/calls/replay.js')).replay);
}

function addConfiguration(program: CliCommand): void {
  program.commandsGroup('The configuration:');
  program
    .command('add')
    .argument('[NAME]', 'its key in the configuration; without it, Trunkline takes one from the package')
    .argument(
      '[PACKAGE...]',
      'an npm package, the address of a remote server, or a name of the official MCP registry; after `--`: the arguments of the package, or a command with its arguments',
    )
    .summary('add a server to the configuration')
    .description(
      'Adds a server to the configuration: an npm package, a command, the address of a remote server, or a server of the official MCP registry, such as io.github.user/server. Keeps the comments of the file and everything else.',
    )
    .option(
      '--env <NAME=VALUE>',
      'a variable of the server; repeatable. Secrets go into trunkline.env. NAME alone stands for the variable of your environment',
      collect,
    )
    .option(
      '--header <LINE>',
      'a header of a remote server, as `Name: value`; repeatable. Secrets go into trunkline.env. A value can name a stored secret',
      collect,
    )
    .option('--sandbox', 'confine its program, with the known needs of its package')
    .option('--dry-run', 'print what would be added')
    .option('--json', 'print the entry as JSON')
    .example('trunkline add files @modelcontextprotocol/server-filesystem -- ~/notes')
    .example('trunkline add weather -- python3 /opt/weather/server.py')
    .example('trunkline add io.github.user/server --env API_KEY=…')
    .example(`trunkline add docs https://mcp.example.com/mcp --header 'Authorization: Bearer \${secret:DOCS}'`)
    .runs(async () => (await import('./commands/packages/add.js')).add);
  const removed = 'Removes a server from the configuration. Everything else in the file stays as it is.';
  addChange(program, 'remove', 'remove a server from the configuration', removed);
  addChange(program, 'enable', 'use a disabled server again', 'Makes Trunkline use a disabled server again.');
  const ignored = 'Makes Trunkline ignore a server, which stays in the configuration.';
  addChange(program, 'disable', 'ignore a server', ignored);
  program
    .command('trust')
    .argument('[FOLDER]', 'a folder of the project; without it, the current folder')
    .summary('use the configuration of a project beside your own')
    .description(
      `Shows the trunkline.yaml of the project around the current folder, or what has changed in it since it was trusted, and what its servers would run. Then asks whether to trust this text. Clients that run in the folder see its servers beside yours; a key of the project replaces yours there. Without trust, the file does nothing. The text that was shown stays in use until another one is trusted.`,
    )
    .option('-y, --yes', 'trust without asking')
    .option('--remove', 'trust the project no longer')
    .option('--list', 'list the trusted projects')
    .option('--json', 'print the result as JSON, and ask nothing; with --yes, also trust')
    .example(
      'trunkline trust',
      'trunkline trust ~/src/shop --yes',
      'trunkline trust --remove',
      'trunkline trust --list',
    )
    .runs(async () => (await import('./commands/config/trust.js')).trust);
  const secret = program
    .command('secret')
    .summary('store, list or remove secrets')
    .description(
      `Secrets of yours, to which a configuration refers with \${secret:NAME}. They are in a file of the data folder that only you can read, or in the keychain of the system.`,
    )
    .example('trunkline secret set GITHUB_TOKEN', 'trunkline secret list');
  const set = addSecret(secret, 'set', 'store a secret; asks for its value, or reads it from stdin');
  set.option('--keychain', 'in the keychain of the system (macOS and Linux)');
  addSecret(secret, 'list', 'list the names of the secrets');
  addSecret(secret, 'remove', 'remove a secret');
}

function addLogins(program: CliCommand): void {
  program.commandsGroup('Logins at servers behind a URL:');
  program
    .command('login')
    .argument('<SERVER>', 'key of a server with `url`')
    .summary('log in at a server behind a URL')
    .description(
      `Logs in at a server behind a URL, with OAuth: opens the browser, and waits until it comes back to this machine. On a machine without a browser, --no-browser prints the page to open elsewhere, and takes the address at which that browser ends on stdin. Running gateways use the login at once, and renew it.`,
    )
    .option('--no-browser', 'print the page, and do not open the browser')
    .option('--device', 'with a code to type on another device, where the authorization server offers that')
    .option('--scope <SCOPE>', 'request this scope instead of those that the server names; repeatable', collect)
    .option('--client-id <ID>', 'as this registered OAuth app')
    .option('--json', 'print the login as JSON, and the page on stderr')
    .example('trunkline login linear', 'trunkline login linear --no-browser')
    .runs(async () => (await import('./commands/logins/log-in.js')).login);
  program
    .command('logout')
    .argument('<SERVER>', 'key of a server with `url`')
    .summary('remove the login at a server behind a URL')
    .description(
      'Removes the tokens for a server behind a URL. Calls of its tools fail until the next login; running gateways notice it within seconds.',
    )
    .option('--revoke', 'and have the authorization server revoke them')
    .option('--json', 'print the result as JSON')
    .example('trunkline logout linear --revoke')
    .runs(async () => (await import('./commands/logins/auth.js')).logout);
  const auth = program
    .command('auth')
    .summary('show the logins')
    .description(
      'Shows the logins at the servers behind a URL: state, authorization server, scopes, and where they are stored.',
    )
    .example('trunkline auth status');
  auth
    .command('status')
    .summary('show the logins at the servers of the configuration')
    .description(
      'Shows for each server behind a URL of the configuration whether you are logged in, at which authorization server, with which scopes, and until when. Trunkline renews a login by itself where the authorization server allows that.',
    )
    .option('--json', 'print the logins as JSON')
    .example(`trunkline auth status --json | jq -r '.logins[] | select(.state != "logged_in").server'`)
    .runs(async () => (await import('./commands/logins/auth.js')).authStatus);
  auth
    .command('forget')
    .argument('<USER>', 'name of the user, as in `userClaim` of the tokens')
    .summary('remove everything of a user who leaves')
    .description(
      'Removes everything of a user of `gateway.http.auth.jwt`: the logins at servers with `login: user`, which are revoked where that is possible, the variables of the user, and the kept lists of tools. The running gateways of the configuration end the processes of the user. Tokens of the identity provider stay valid until they expire, so lock the user there first.',
    )
    .option('--json', 'print what was removed as JSON')
    .example('trunkline auth forget ann@example.com')
    .runs(async () => (await import('./commands/logins/forget.js')).forget);
}

function addClients(program: CliCommand): void {
  program.commandsGroup('Clients on this machine:');
  program
    .command('init')
    .summary('set up everything: import, install, try, register')
    .description(
      'Sets Trunkline up in one command: finds the MCP clients on this machine and their servers, shows what it would do and asks, imports the servers, installs their packages, starts each one once, registers Trunkline with the clients, and removes from the clients the servers that work. A server that does not start stays in its client and is disabled in the configuration, with the reason in a comment; the next `trunkline init` tries it again. `trunkline undo` takes the changes of the clients back.',
    )
    .option('--client <CLIENT>', 'register Trunkline with this client only; repeatable', collect)
    .option('--sandbox', 'confine the imported servers, without asking')
    .option('--dry-run', 'show what would be done, and change nothing')
    .option('--json', 'print what each step does as JSON; needs --yes or --dry-run')
    .option('-y, --yes', 'do it without asking, with all clients that are installed')
    .example('trunkline init', 'trunkline init --yes --client claude-code')
    .runs(async () => (await import('./commands/clients/init.js')).init);
  program
    .command('import')
    .summary('import the servers of your other clients')
    .description(
      'Imports the MCP servers of your other clients into the configuration of Trunkline, and creates it if there is none. Lists them first and asks. The files of the clients stay as they are. Secrets go into trunkline.env beside the configuration, which only you can read.',
    )
    .option('--from <CLIENT|FILE|->', 'only from this client, such as claude-desktop, from this file, or from stdin')
    .option('--server <NAME>', 'only this server, by its name in the client; repeatable', collect)
    .option('--sandbox', 'confine their programs, with the known needs of their packages')
    .option('--dry-run', 'only list them')
    .option('--json', 'print the plan as JSON; with --yes, also write')
    .option('-y, --yes', 'write without asking')
    .example('trunkline import --dry-run', 'trunkline import --from claude-desktop --server github')
    .runs(async () => (await import('./commands/clients/import.js')).importServers);
  withChoice(
    program
      .command('connect')
      .argument('[CLIENT...]', 'names of clients; without one, says which are installed')
      .summary('register Trunkline with MCP clients on this machine')
      .description(
        "Registers Trunkline with clients, for all projects: adds an entry `trunkline` to the file in which a client keeps its servers, and changes nothing else in it. With --config, clients use that configuration. Makes a backup beside the file. The client's other servers stay. Restart a client afterwards.",
      ),
  )
    .option('--json', 'print the changes as JSON')
    .example('trunkline connect claude-desktop cursor', 'trunkline connect --all --dry-run')
    .example('trunkline connect codex --config ~/servers.yaml')
    .runs(async () => (await import('./commands/clients/connect.js')).connect);
  withChoice(
    program
      .command('disconnect')
      .argument('[CLIENT...]', 'names of clients')
      .summary('remove Trunkline from clients')
      .description('Removes Trunkline from clients. Makes a backup beside each file.'),
  )
    .option('--json', 'print the changes as JSON')
    .example('trunkline disconnect cursor')
    .runs(async () => (await import('./commands/clients/connect.js')).disconnect);
  program
    .command('undo')
    .argument('[CLIENT...]', 'names of clients')
    .summary("take back the last change of clients' files")
    .description(
      "Takes back the changes of the last command to files of clients, or the last change for each of the named clients. A file without later changes becomes byte for byte as it was; in every other file only Trunkline's changes are taken back.",
    )
    .option('--all', 'every client')
    .option(...YES)
    .option('--json', 'print the result as JSON')
    .example('trunkline undo', 'trunkline undo cursor')
    .runs(async () => (await import('./commands/clients/connect.js')).undo);
}

function addPackages(program: CliCommand): void {
  program.commandsGroup('Packages:');
  program
    .command('install')
    .argument('[SERVER...]', 'keys of servers; without them, all servers')
    .summary('install missing packages')
    .description(
      'Installs the missing packages of all servers, or of the named servers. Installs the versions in trunkline.lock, next to the configuration; packages that are not locked are installed in the newest version that the configuration accepts, and locked. A second run changes nothing. Servers also install missing packages when they start; use this command to do it in advance, for example before going offline.',
    )
    .option('--json', 'print the result as JSON')
    .example('trunkline install', 'trunkline install --config ~/servers.yaml')
    .runs(async () => (await import('./commands/packages/install.js')).install);
  program
    .command('update')
    .argument('[NAME]', 'key of a server, or name of a package; without it, all packages')
    .summary('update packages and report which tools change')
    .description(
      'Installs the newest version of every package without a fixed version in the configuration, or only of the named server or package. With a range or a tag, it is the newest version that the range or the tag accepts. Starts the old and the new version once, reports which tools were added (+), removed (-) or changed (~), and locks the new version. A package that cannot be installed or started stays at its version. A running gateway takes the new versions when its configuration file is saved, or when the gateway is restarted.',
    )
    .option('--json', 'print the result as JSON')
    .example('trunkline update', 'trunkline update files')
    .runs(async () => (await import('./commands/packages/update.js')).update);
  program
    .command('outdated')
    .summary('list installed, accepted and newest versions of packages')
    .description(
      "Lists the packages of all servers: the installed version, the version that `trunkline update` would install, the newest version, and whether the package is in node_modules next to the configuration or in Trunkline's own store.",
    )
    .option('--json', 'print the versions as JSON')
    .example('trunkline outdated', `trunkline outdated --json | jq '.servers[] | select(.installed != .wanted)'`)
    .runs(async () => (await import('./commands/packages/outdated.js')).outdated);
}

function addSetup(program: CliCommand): void {
  program.commandsGroup('Setup:');
  program
    .command('doctor')
    .argument('[SERVER...]', 'keys of servers; without them, all servers')
    .summary('find out why something does not work, and how to mend it')
    .description(
      `Checks everything between your clients and your servers: Node, npm, folders and limits of this machine, the configuration with its variables, commands and packages, the entries of clients, and the processes of Trunkline. Then starts every server once, or asks the running gateway, and runs what each client has registered as that client runs it. Each finding has a stable code, its evidence, and what to do. Changes nothing, unless --fix is given. Shows no secrets.

--fix changes the modes of secret files, removes files that killed runs have left, ends their processes, installs damaged packages again, and removes from the files of clients the servers that Trunkline runs as well; \`trunkline undo\` puts them back. Everything else is named as a command. Exit code 1 means that there is at least one finding of the level fail.`,
    )
    .option('--json', 'print the findings as JSON')
    .option('--fix', 'mend what is safe to mend')
    .option('--no-start', 'start neither servers nor the commands of clients')
    .option('--offline', 'do not use the network')
    .option('--codes', 'list all codes and their meanings')
    .option(...GATEWAY)
    .example('trunkline doctor', 'trunkline doctor github --no-start', 'trunkline doctor --json > report.json')
    .runs(async () => (await import('./commands/doctor/doctor.js')).doctor);
  program
    .command('schema')
    .summary('print the JSON Schema of the configuration')
    .description(
      'Prints the JSON Schema of the configuration, with which editors complete keys, describe them and mark mistakes. With --out, writes the schema to a file, and says which line of the configuration refers to it.',
    )
    .option('-o, --out <FILE>', 'write the schema to this file')
    .example('trunkline schema > trunkline.schema.json')
    .example('trunkline schema --out ~/.config/trunkline/trunkline.schema.json')
    .runs(async () => (await import('./commands/config/print-schema.js')).schema);
  const token = program.command('token');
  token
    .summary('print the token for HTTP clients')
    .description(
      'Prints the bearer token for clients of `trunkline serve --http`, and creates the token if there is none. The token is stored in a file that only you can read.',
    )
    .option('--json', 'print the token and its file as JSON')
    .example('trunkline token', `curl -H "Authorization: Bearer $(trunkline token)" http://localhost:7411/mcp`)
    .runs(async () => (await import('./commands/serve/token.js')).token);
  token
    .command('add')
    .argument('<NAME>', 'the name of the machine: small letters, digits, `.`, `_` and `-`')
    .summary('make a token for a machine, such as a CI job')
    .description(
      'Makes a token for a program without a person, and prints it once. The file of `gateway.http.auth.tokens` gets its name, its hash and its groups. A running gateway accepts the token within a second. To replace a token, add another one with the same name, and remove the earlier one later.',
    )
    .option('--group <GROUP>', 'a group of the machine, for the views of groups; repeatable', collect)
    .option('--json', 'print the name, the groups, the file and the token as JSON')
    .example('trunkline token add prometheus', 'trunkline token add ci --group engineering')
    .runs(async () => (await import('./commands/serve/users.js')).addToken);
  token
    .command('list')
    .summary('list the machines that have a token')
    .description('Lists the machines of the file of `gateway.http.auth.tokens`, and their groups. Shows no token.')
    .option('--json', 'print the machines as JSON')
    .example('trunkline token list')
    .runs(async () => (await import('./commands/serve/users.js')).listTokens);
  token
    .command('remove')
    .argument('<NAME>', 'the name of the machine')
    .summary('remove the tokens of a machine')
    .description('Removes the tokens of a machine. A running gateway notices within a second, and ends no open stream.')
    .option('--earlier', 'keep the token that was added last')
    .option('--json', 'print the name, the number of tokens and the file as JSON')
    .example('trunkline token remove ci', 'trunkline token remove ci --earlier')
    .runs(async () => (await import('./commands/serve/users.js')).removeToken);
  const user = program.command('user');
  user
    .summary('store, list or remove variables of the users of an HTTP gateway')
    .description(
      `Users of \`gateway.http.auth\` have variables of their own, to which a configuration refers with \${user:NAME}.`,
    )
    .example('trunkline user set ann@example.com GITHUB_TOKEN', 'trunkline user list');
  user
    .command('list')
    .argument('[NAME]', 'a user or a machine; without it, all')
    .summary('list users and machines, their variables, and what they lack')
    .description('Lists the names of variables, those that servers need and that have no value, too. Shows no values.')
    .option('--json', 'print the users as JSON')
    .example('trunkline user list', 'trunkline user list ann@example.com')
    .runs(async () => (await import('./commands/serve/users.js')).listUsers);
  user
    .command('remove')
    .argument('<NAME>', 'the user, as the claim `userClaim` names it')
    .argument('[VARIABLE]', 'the variable; without it, all variables of the user')
    .summary('remove a variable of a user, or all')
    .description('Removes values of a user. It applies to the next session of the user; processes that run keep them.')
    .option(...MACHINE)
    .option('--json', 'print the name, the removed variables and their folder as JSON')
    .example('trunkline user remove ann@example.com GITHUB_TOKEN', 'trunkline user remove ci --machine')
    .runs(async () => (await import('./commands/serve/users.js')).removeVariables);
  user
    .command('set')
    .argument('<NAME>', 'the user, as the claim `userClaim` names it')
    .argument('<VARIABLE>', 'the variable, such as GITHUB_TOKEN')
    .summary('store a variable of a user; asks for its value, or reads it from stdin')
    .description(
      `Stores the value of \${user:VARIABLE} for a user, in the folder of \`gateway.http.auth.variables\`. Asks for the value, or reads it from stdin. It applies to the next session of the user.`,
    )
    .option(...MACHINE)
    .option('--json', 'print the name, the variable and the file as JSON')
    .example(
      'trunkline user set ann@example.com GITHUB_TOKEN',
      'trunkline user set ci GITHUB_TOKEN --machine < token.txt',
    )
    .runs(async () => (await import('./commands/serve/users.js')).setVariable);
  program
    .command('completion')
    .addArgument(new Argument('<SHELL>', 'bash, zsh or fish').choices(['bash', 'zsh', 'fish']))
    .summary('print a script that completes commands in a shell')
    .description(
      'Prints a script for your shell. It completes commands, options, the servers of the configuration, and the tools that they listed in an earlier run.',
    )
    .example('source <(trunkline completion bash)      # in ~/.bashrc')
    .example('source <(trunkline completion zsh)       # in ~/.zshrc, after compinit')
    .example('trunkline completion fish > ~/.config/fish/completions/trunkline.fish')
    .runs(async () => (await import('./completion.js')).printScript);
  // The scripts run this command. It prints candidates for the last word, each with a tab and a description.
  program
    .command('complete', { hidden: true })
    .argument('[WORD...]')
    .runs(async () => (await import('./completion.js')).printCandidates.bind(undefined, program));
  program
    .command('help')
    .argument('[COMMAND...]', 'the command; without it, the overview')
    .summary('show help for a command')
    .description('Shows the help of a command: what it does, its arguments and options, and examples.')
    .option('--man', 'print the manual page of all commands, for `man`')
    .example('trunkline help check', 'trunkline help hub restart')
    .example('trunkline help --man > ~/.local/share/man/man1/trunkline.1')
    .runs<{ man: true }>(async () => async ({ words, options }) => {
      if (options.man === true) {
        const { manPage } = await import('./man-page.js');
        await print(manPage(program).trimEnd());
        return 0;
      }
      let command = program;
      for (const word of words)
        command = (command.commands.find((each) => each.name() === word) as CliCommand) ?? command.refuse(word);
      command.outputHelp();
      return 0;
    });
}

function addStop(parent: CliCommand, summary: string, same: string): void {
  const command = parent.command('stop');
  command
    .summary(summary)
    .description(
      `Stops the hub of the configuration and its servers${same}. Clients stay connected: each starts a hub again when it has something to send. Where no hub runs, stops the gateways that serve the configuration over HTTP, as \`trunkline drain\` does. The command says what ends each gateway that goes on, and ends with exit code 1 if it has stopped none of them.`,
    )
    .option('--all', 'stop every hub of yours, whatever its configuration, also if that does not exist any more')
    .option('--json', 'print the result as JSON')
    .option(...GATEWAY)
    .example(command.path, `${command.path} --all`)
    .runs(async () => (await import('./commands/hub/end-hub.js')).stop);
}

function addChange(
  program: CliCommand,
  command: 'remove' | 'enable' | 'disable',
  summary: string,
  description: string,
): void {
  program
    .command(command)
    .argument('<SERVER>', 'key of a server, as `trunkline check` shows it')
    .summary(summary)
    .description(description)
    .option('--json', 'print the result as JSON')
    .example(`trunkline ${command} files`)
    .runs(async () => (await import('./commands/config/change-server.js')).changeServer.bind(undefined, command));
}

function addSecret(parent: CliCommand, action: 'set' | 'list' | 'remove', summary: string): CliCommand {
  const command = parent.command(action);
  if (action !== 'list') command.argument('<NAME>', 'the name of the secret');
  return command
    .summary(summary)
    .description(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`)
    .example(`trunkline secret ${action}${action === 'list' ? '' : ' GITHUB_TOKEN'}`)
    .option('--json', 'print the result as JSON')
    .runs(async () => (await import('./commands/config/secret.js')).secret.bind(undefined, action));
}

/** The option of the commands that an agent runs again and again. */
const HUB = [
  '--hub',
  'start the hub if no gateway runs, and leave it running, so that the next command is fast',
] as const;

/** The option of the commands about a running gateway. */
const GATEWAY = [
  '--gateway <PID|URL>',
  'this gateway, as `trunkline ps --all` lists it, instead of the usual one',
] as const;

const MACHINE = ['--machine', 'NAME is a machine, as in the file of `gateway.http.auth.tokens`'] as const;

/** Scripts may give the option to every command that changes files. */
const YES = ['-y, --yes', 'do not ask; this command never does'] as const;

function withChoice(command: CliCommand): CliCommand {
  return command
    .option('--all', 'every client')
    .option('--dry-run', 'show what would change, and change nothing')
    .option(...YES);
}

/** Collects the values of an option that may be given several times, in order. */
function collect(value: string, earlier: readonly string[] = []): string[] {
  return [...earlier, value];
}
