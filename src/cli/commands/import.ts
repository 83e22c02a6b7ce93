import { type DefineCommand, GROUPS } from '../command.js';
import { collect } from '../repeatable.js';

export const importCommand: DefineCommand = (program) =>
  program
    .command('import')
    .helpGroup(GROUPS.clients)
    .summary('take the servers of your other clients over')
    .description(
      'Takes the MCP servers of your other clients over into the configuration of Trunkline, and creates it if there is none. Lists them first and asks. The files of the clients stay as they are. Secrets go into trunkline.env beside the configuration, which only you can read.',
    )
    .option('--from <CLIENT|FILE|->', 'only from this client, such as claude-desktop, from this file, or from stdin')
    .option('--server <NAME>', 'only this server, by its name in the client; repeatable', collect)
    .option('--dry-run', 'only list them')
    .option('--json', 'print the plan as JSON; with --yes, also write')
    .option('-y, --yes', 'write without asking')
    .example('trunkline import --dry-run', 'trunkline import --from claude-desktop --server github')
    .runs<{ from: string; server: string[]; dryRun: true; json: true; yes: true }>(async ({ settings, options }) => {
      const { importServers } = await import('./clients/import.js');
      const { from, server: servers = [], dryRun = false, json = false, yes = false } = options;
      return await importServers(settings, { from, servers, isDryRun: dryRun, isJson: json, isYes: yes });
    });
