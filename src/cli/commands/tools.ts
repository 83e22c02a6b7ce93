import { type DefineCommand, GROUPS } from '../command.js';

export const toolsCommand: DefineCommand = (program) =>
  program
    .command('tools')
    .argument('[SERVER...]', 'keys of servers; without them, all servers')
    .helpGroup(GROUPS.tools)
    .summary('list the tools of all servers')
    .description(
      'Lists the tools of all servers, or of the named servers, as a client sees them, and the server of each tool. Also lists the quarantined tools, with the reason. Uses the hub if it runs; otherwise starts the servers for this list.',
    )
    .option('--json', 'print the list as a client gets it')
    .option('--view <NAME>', 'as a client with this view sees it')
    .option('--alone', 'start servers for this list, also if the hub runs')
    .example('trunkline tools', 'trunkline tools files', `trunkline tools --json | jq -r '.tools[].name'`)
    .runs<{ json: true; alone: true }>(async ({ settings, words, options }) => {
      const { tools } = await import('./calls/tools.js');
      return await tools(settings, words, { isJson: options.json === true, isAlone: options.alone === true });
    });
