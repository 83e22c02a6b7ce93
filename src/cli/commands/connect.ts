import { type CliCommand, type DefineCommand, GROUPS } from '../command.js';

interface Options {
  all: true;
  dryRun: true;
  json: true;
}

export const connectCommand: DefineCommand = (program) =>
  withChoice(
    program
      .command('connect')
      .argument('[CLIENT...]', 'names of clients; without one, says which are installed')
      .helpGroup(GROUPS.clients)
      .summary('register Trunkline with MCP clients on this machine')
      .description(
        "Registers Trunkline with clients, for all projects: adds an entry `trunkline` to the file in which a client keeps its servers, and changes nothing else in it. With --config, clients use that configuration. Makes a backup beside the file. The client's other servers stay. Restart a client afterwards.",
      ),
  )
    .option('--json', 'print the changes as JSON')
    .example('trunkline connect claude-desktop cursor', 'trunkline connect --all --dry-run')
    .example('trunkline connect codex --config ~/servers.yaml')
    .runs<Options>(async ({ settings, words, options }) => {
      const { connect } = await import('./clients/connect.js');
      return await connect(settings, { clients: words, ...chosen(options) });
    });

export const disconnectCommand: DefineCommand = (program) =>
  withChoice(
    program
      .command('disconnect')
      .argument('[CLIENT...]', 'names of clients')
      .helpGroup(GROUPS.clients)
      .summary('remove Trunkline from clients')
      .description('Removes Trunkline from clients. Makes a backup beside each file.'),
  )
    .option('--json', 'print the changes as JSON')
    .example('trunkline disconnect cursor')
    .runs<Options>(async ({ words, options }) => {
      const { disconnect } = await import('./clients/connect.js');
      return await disconnect({ clients: words, ...chosen(options) });
    });

export const undoCommand: DefineCommand = (program) =>
  program
    .command('undo')
    .argument('[CLIENT...]', 'names of clients')
    .helpGroup(GROUPS.clients)
    .summary("take back the last change of clients' files")
    .description(
      "Takes back what the last command has changed in files of clients, or the last change for each of the named clients. A file that nobody has changed since becomes byte for byte what it was; in every other file only Trunkline's changes are taken back.",
    )
    .option('--all', 'every client')
    .option('--json', 'print the result as JSON')
    .example('trunkline undo', 'trunkline undo cursor')
    .runs<Options>(async ({ words, options }) => {
      const { undo } = await import('./clients/connect.js');
      return await undo({ clients: words, isAll: options.all === true, isJson: options.json === true });
    });

function withChoice(command: CliCommand): CliCommand {
  return command
    .option('--all', 'every client')
    .option('--dry-run', 'show what would change, and change nothing') as CliCommand;
}

function chosen({ all, dryRun, json }: Partial<Options>) {
  return { isAll: all === true, isDryRun: dryRun === true, isJson: json === true };
}
