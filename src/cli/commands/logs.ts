import { type DefineCommand, GROUPS } from '../command.js';

export const logsCommand: DefineCommand = (program) =>
  program
    .command('logs')
    .argument('[SERVER]', 'key of a server: print only what concerns it')
    .helpGroup(GROUPS.running)
    .summary('print the log of the hub, or what concerns one server')
    .description(
      'Prints the log of the hub, the oldest records first, also when no hub runs. With SERVER: the last output of that server, and only the records about it. On a terminal the records are text; elsewhere they are JSON, one on a line.',
    )
    .option('-f, --follow', 'go on with what is logged from now on')
    .option('--json', 'print records as JSON, also on a terminal')
    .example('trunkline logs -f', 'trunkline logs files')
    .runs<{ follow: true; json: true }>(async ({ settings, words: [server], options }) => {
      const { logs } = await import('./hub/logs.js');
      return await logs(settings, { server, isFollowed: options.follow === true, isJson: options.json === true });
    });
