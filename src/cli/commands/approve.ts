import { type DefineCommand, GROUPS } from '../command.js';

export const approveCommand: DefineCommand = (program) =>
  program
    .command('approve')
    .argument('[SERVER]', 'key of a server; without it, all servers that require approval')
    .argument('[TOOL...]', 'names of its tools; without them, all that wait for approval')
    .helpGroup(GROUPS.tools)
    .summary('review new and changed tools, and approve them')
    .description(
      'For servers with `approval: required`: starts them once and shows each tool that is new or has changed since its approval, as a model would see it. Removed lines are marked with -, added lines with +. Asks for each tool whether to approve it. Without a terminal it approves nothing, unless --yes is given. A running Trunkline offers approved tools at once.',
    )
    .option('-y, --yes', 'approve without asking')
    .option('--json', 'print the tools as JSON, and ask nothing; with --yes, also approve')
    .example('trunkline approve', 'trunkline approve files read_text_file', 'trunkline approve files --yes')
    .runs<{ yes: true; json: true }>(async ({ settings, words: [server, ...tools], options }) => {
      const { approve } = await import('./config/approve.js');
      return await approve(settings, { server, tools, isYes: options.yes === true, isJson: options.json === true });
    });
