import { type DefineCommand, GROUPS } from '../command.js';
import { collect } from '../repeatable.js';

export const addCommand: DefineCommand = (program) =>
  program
    .command('add')
    .argument('[NAME]', 'its key in the configuration; without it, Trunkline takes one from the package')
    .argument(
      '[PACKAGE...]',
      'an npm package, the address of a remote server, or a name of the official MCP registry; after `--`: the arguments of the package, or a command with its arguments',
    )
    .helpGroup(GROUPS.configuration)
    .summary('add a server to the configuration')
    .description(
      'Adds a server to the configuration: an npm package, a command, the address of a remote server, or a server of the official MCP registry, such as io.github.user/server. Keeps the comments of the file and everything else.',
    )
    .option(
      '--env <NAME=VALUE>',
      'a variable of the server; repeatable. Secrets go into trunkline.env. NAME alone stands for the variable of your environment',
      collect,
    )
    .option('--dry-run', 'print what would be added')
    .option('--json', 'print the entry as JSON')
    .example('trunkline add files @modelcontextprotocol/server-filesystem -- ~/notes')
    .example('trunkline add weather -- python3 /opt/weather/server.py')
    .example('trunkline add io.github.user/server --env API_KEY=…')
    .runs<{ env: string[]; dryRun: true; json: true }>(async ({ settings, words, behind, options }) => {
      const { add } = await import('./packages/add.js');
      const before = words.slice(0, words.length - (behind?.length ?? 0));
      return await add(settings, {
        words: before,
        rest: behind,
        env: options.env ?? [],
        isDryRun: options.dryRun === true,
        isJson: options.json === true,
      });
    });
