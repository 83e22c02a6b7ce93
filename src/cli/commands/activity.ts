import { type DefineCommand, GROUPS } from '../command.js';

export const activityCommand: DefineCommand = (program) =>
  program
    .command('activity')
    .helpGroup(GROUPS.messages)
    .summary('show the log of calls')
    .description(
      'Shows the call log: one line for each call, with the client, the server, the tool, the outcome, the time and the sizes. The setting `gateway: { callLog: metadata }` turns the log on; `full` adds arguments and results, which --json shows.',
    )
    .option('-f, --follow', 'go on with the calls from now on')
    .option('--server <SERVER>', 'show only the calls of this server')
    .option('--json', 'print the log as it is')
    .example('trunkline activity -f', 'trunkline activity --server files --json')
    .runs<{ follow: true; server: string; json: true }>(async ({ options }) => {
      const { activity } = await import('./hub/activity.js');
      const { follow = false, server, json = false } = options;
      return await activity({ server, isFollowed: follow, isJson: json });
    });
