// The commands in `docs/commands.md`, from the table of commands in `src/cli/program.ts`, which also has the help and the manual page.
// The rest of the page is written by hand. `npm run generate` writes both.

const NOTE = '<!-- From `src/cli/program.ts`, by `npm run generate`. -->';

/** Pages that tell more about a command, by its words after `trunkline`. */
const MORE = {
  serve: 'http.md',
  drain: 'http.md#stop-the-http-server',
  'cluster status': 'cluster.md#watch-the-gateways',
  tools: 'tools.md#cost',
  call: '#arguments-of-a-call',
  sandbox: 'sandbox.md',
  approve: 'configuration.md#approval',
  status: 'hub.md#the-screen',
  web: 'page.md',
  metrics: 'metrics.md',
  ps: 'hub.md#which-gateway-a-command-asks',
  stop: 'hub.md#which-gateway-a-command-asks',
  activity: 'recording.md#the-call-log',
  inspect: 'recording.md',
  record: 'recording.md',
  replay: 'recording.md',
  trust: 'layers.md#what-trust-means',
  add: 'importing.md#add-a-server',
  remove: 'importing.md#remove-disable-and-enable-a-server',
  'secret set': 'configuration.md#secrets',
  login: 'remote-servers.md#logins',
  init: 'importing.md#everything-in-one-command',
  import: 'importing.md',
  connect: 'clients.md',
  install: 'configuration.md#packages',
  update: 'configuration.md#updates',
  doctor: 'doctor.md',
  token: 'http.md#token',
  'token add': 'users.md#tokens-for-machines',
  'user set': 'users.md#variables-of-users',
  completion: '#completion',
};

/** The page with the commands of this program (a `CliCommand`) in place of those that stand in it. */
export function commandsPage(page, program) {
  const help = program.createHelp();
  const commands = help.visibleCommands(program);
  const headings = [...new Set(commands.map((each) => each.helpGroup()))];
  const groups = headings.map((heading) => {
    const own = commands.filter((each) => each.helpGroup() === heading);
    const all = own.flatMap((each) => [each, ...help.visibleCommands(each)]);
    return [`### ${heading.replace(/:$/, '')}`, ...all.map((each) => commandText(each, help))].join('\n\n');
  });
  const options = table(
    'Option',
    help.visibleOptions(program).map((each) => optionRow(each, help)),
  );
  return [
    ['## Options of all commands', '## Exit codes', options],
    ['## Commands and their options', '## JSON', groups.join('\n\n')],
  ].reduce((text, [from, to, content]) => {
    const [begin, end] = [text.indexOf(`\n${from}\n`), text.indexOf(`\n${to}\n`)];
    if (begin < 0 || end < begin) throw new Error(`docs/commands.md has no ${from} before ${to}`);
    return `${text.slice(0, begin)}\n${from}\n\n${NOTE}\n\n${content}\n${text.slice(end)}`;
  }, page);
}

function commandText(command, help) {
  const more = MORE[command.path.replace(/^trunkline /, '')];
  const rows = [
    ...help.visibleArguments(command).map((each) => [help.argumentTerm(each), help.argumentDescription(each)]),
    ...command.options.map((each) => optionRow(each, help)),
  ];
  return [
    `#### \`${help.commandUsage(command).replace(' [options]', '')}\``,
    withoutHtml(command.description()) + (more === undefined ? '' : ` [More](${more})`),
    ...(rows.length === 0 ? [] : [table('Argument or option', rows)]),
    `\`\`\`sh\n${command.examples.join('\n')}\n\`\`\``,
  ].join('\n\n');
}

function optionRow(option, help) {
  return [help.optionTerm(option), help.optionDescription(option)];
}

function table(first, rows) {
  const lines = rows.map(
    ([term, about]) => `| \`${term.replaceAll('|', '\\|')}\` | ${withoutHtml(about).replaceAll('|', '\\|')} |`,
  );
  return [`| ${first} | What it does |`, '|---|---|', ...lines].join('\n');
}

/** Text in which `<` begins no HTML outside of code. */
function withoutHtml(text) {
  return text.replace(/`[^`]*`|</g, (found) => (found === '<' ? '&lt;' : found));
}
