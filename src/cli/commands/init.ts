import { type DefineCommand, GROUPS } from '../command.js';
import { collect } from '../repeatable.js';

export const initCommand: DefineCommand = (program) =>
  program
    .command('init')
    .helpGroup(GROUPS.clients)
    .summary('set up everything: import, install, try, register')
    .description(
      'Sets Trunkline up in one command: finds the MCP clients on this machine and their servers, shows what it would do and asks, imports the servers, installs their packages, starts each one once, registers Trunkline with the clients, and removes from the clients the servers that work. A server that does not start stays in its client and is disabled in the configuration. `trunkline undo` takes the changes of the clients back.',
    )
    .option('--client <CLIENT>', 'register Trunkline with this client only; repeatable', collect)
    .option('--dry-run', 'show what would be done, and change nothing')
    .option('--json', 'print what each step does as JSON; needs --yes or --dry-run')
    .option('-y, --yes', 'do it without asking, with all clients that are installed')
    .example('trunkline init', 'trunkline init --yes --client claude-code')
    .runs<{ client: string[]; dryRun: true; json: true; yes: true }>(async ({ settings, options }) => {
      const { init } = await import('./clients/init.js');
      const { client: clients = [], dryRun = false, json = false, yes = false } = options;
      return await init(settings, { clients, isDryRun: dryRun, isJson: json, isYes: yes });
    });
