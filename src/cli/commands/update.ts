import { type DefineCommand, GROUPS } from '../command.js';

export const updateCommand: DefineCommand = (program) =>
  program
    .command('update')
    .argument('[NAME]', 'key of a server, or name of a package; without it, all packages')
    .helpGroup(GROUPS.packages)
    .summary('update packages and report which tools change')
    .description(
      'Installs the newest version of every package without a fixed version in the configuration, or only of the named server or package. With a range or a tag, it is the newest version that the range or the tag accepts. Starts the old and the new version once, reports which tools were added (+), removed (-) or changed (~), and locks the new version. A package that cannot be installed or started stays at its version. Restart Trunkline to use the new versions.',
    )
    .option('--json', 'print the result as JSON')
    .example('trunkline update', 'trunkline update files')
    .runs<{ json: true }>(async ({ settings, words: [name], options }) => {
      const { update } = await import('./packages/update.js');
      return await update(settings, name, { isJson: options.json === true });
    });
