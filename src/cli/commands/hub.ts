import { type DefineCommand, GROUPS } from '../command.js';
import { STOP_ALL } from './stop.js';

export const hubCommand: DefineCommand = (program) => {
  const hub = program
    .command('hub')
    .helpGroup(GROUPS.running)
    .summary('show, stop or restart the hub itself')
    .description('The hub is the background process that runs the servers for all clients of a configuration.')
    .example('trunkline hub status', 'trunkline hub restart');
  hub
    .command('status')
    .summary('show whether it runs, its version, and earlier hubs that still serve clients')
    .description('Shows whether the hub runs, its version, and earlier hubs that still serve clients.')
    .option('--json', 'print it as JSON')
    .example('trunkline hub status')
    .runs<{ json: true }>(async ({ settings, options }) => {
      const { hubStatus } = await import('./hub/hub-commands.js');
      return await hubStatus(settings, options.json === true);
    });
  hub
    .command('stop')
    .summary('stop it and its servers')
    .description(
      'Stops the hub of the configuration and its servers. Clients stay connected: each starts a hub again when it has something to send.',
    )
    .option(...STOP_ALL)
    .option('--json', 'print the result as JSON')
    .example('trunkline hub stop', 'trunkline hub stop --all')
    .runs<{ all: true; json: true }>(async ({ settings, options }) => {
      const { stopEveryHub, stopHub } = await import('./hub/hub-end.js');
      return await (options.all === true
        ? stopEveryHub(options.json === true)
        : stopHub(settings, options.json === true));
    });
  hub
    .command('restart')
    .summary('start another hub, as after an update of Trunkline')
    .description(
      'Starts another hub, as after an update of Trunkline. Clients move to it as soon as nothing of theirs is in flight.',
    )
    .option('--json', 'print the result as JSON')
    .example('trunkline hub restart')
    .runs<{ json: true }>(async ({ settings, options }) => {
      const { restartHub } = await import('./hub/hub-end.js');
      return await restartHub(settings, options.json === true);
    });
};
