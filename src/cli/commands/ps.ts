import { type DefineCommand, GROUPS } from '../command.js';

export const psCommand: DefineCommand = (program) =>
  program
    .command('ps')
    .helpGroup(GROUPS.running)
    .summary('list the hub, its clients and the processes of its servers')
    .description(
      'Lists the hub of the configuration, the clients that it serves, and the processes of its servers with what they use.',
    )
    .option('--json', 'print the lists as JSON')
    .example('trunkline ps', `trunkline ps --json | jq '.hub.clients[].name'`)
    .runs<{ json: true }>(async ({ settings, options }) => {
      const { ps } = await import('./hub/hub-commands.js');
      return await ps(settings, options.json === true);
    });
