import { type DefineCommand, GROUPS } from '../command.js';

export const STOP_ALL = ['--all', 'stop every hub of yours, whatever its configuration'] as const;

export const stopCommand: DefineCommand = (program) =>
  program
    .command('stop')
    .helpGroup(GROUPS.running)
    .summary('stop the hub and its servers')
    .description(
      'Stops the hub of the configuration and its servers; the same as `trunkline hub stop`. Clients stay connected: each starts a hub again when it has something to send.',
    )
    .option(...STOP_ALL)
    .option('--json', 'print the result as JSON')
    .example('trunkline stop', 'trunkline stop --all')
    .runs<{ all: true; json: true }>(async ({ settings, options }) => {
      const { stopEveryHub, stopHub } = await import('./hub/hub-end.js');
      return await (options.all === true
        ? stopEveryHub(options.json === true)
        : stopHub(settings, options.json === true));
    });
