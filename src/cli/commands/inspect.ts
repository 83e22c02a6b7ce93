import { type DefineCommand, GROUPS } from '../command.js';

export const inspectCommand: DefineCommand = (program) =>
  program
    .command('inspect')
    .argument('[FILE]', 'a recording; without it, the messages of the running hub as they pass')
    .helpGroup(GROUPS.messages)
    .summary('show the messages of a recording, or of the hub as they pass')
    .description(
      'Shows the messages of a recording, one on a line; without FILE, the messages of the running hub as they pass. On a terminal, lines are cut to its width.',
    )
    .option('-f, --follow', 'go on with what is recorded from now on')
    .option('--server <SERVER>', 'show only what concerns this server')
    .option('--json', 'print the messages as they are recorded')
    .example('trunkline inspect', 'trunkline inspect session.jsonl --server files')
    .runs<{ follow: true; server: string; json: true }>(async ({ settings, words: [file], options }) => {
      const { inspect } = await import('./calls/inspect.js');
      return await inspect(settings, {
        ...{ file, server: options.server },
        ...{ isFollowed: options.follow === true, isJson: options.json === true },
      });
    });
