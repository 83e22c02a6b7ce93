import { type DefineCommand, GROUPS } from '../command.js';

export const installCommand: DefineCommand = (program) =>
  program
    .command('install')
    .argument('[SERVER...]', 'keys of servers; without them, all servers')
    .helpGroup(GROUPS.packages)
    .summary('install missing packages')
    .description(
      'Installs the missing packages of all servers, or of the named servers. Installs the versions in trunkline.lock, next to the configuration; packages that are not locked are installed in the newest version that the configuration accepts, and locked. A second run changes nothing. Servers also install missing packages when they start; use this command to do it in advance, for example before going offline.',
    )
    .option('--json', 'print the result as JSON')
    .example('trunkline install', 'trunkline install --config ~/servers.yaml')
    .runs<{ json: true }>(async ({ settings, words, options }) => {
      const { install } = await import('./packages/install.js');
      return await install(settings, words, { isJson: options.json === true });
    });
