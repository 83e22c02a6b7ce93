import { type DefineCommand, GROUPS } from '../command.js';

export const restartCommand: DefineCommand = (program) =>
  program
    .command('restart')
    .argument('<SERVER>', 'key of the server')
    .needs('the key of a server', '`trunkline ps` lists the servers')
    .helpGroup(GROUPS.running)
    .summary('restart a running server')
    .description(
      'Restarts a server of the running hub. Its calls in flight fail, and what it had in memory is lost. Clients stay connected.',
    )
    .option('--json', 'print the result as JSON')
    .example('trunkline restart files')
    .runs<{ json: true }>(async ({ settings, words: [server = ''], options }) => {
      const { restartServer } = await import('./hub/hub-commands.js');
      return await restartServer(settings, server, options.json === true);
    });
