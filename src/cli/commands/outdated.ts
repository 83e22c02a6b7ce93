import { type DefineCommand, GROUPS } from '../command.js';

export const outdatedCommand: DefineCommand = (program) =>
  program
    .command('outdated')
    .helpGroup(GROUPS.packages)
    .summary('list installed, accepted and newest versions of packages')
    .description(
      "Lists the packages of all servers: the installed version, the version that `trunkline update` would install, the newest version, and whether the package is in node_modules next to the configuration or in Trunkline's own store.",
    )
    .option('--json', 'print the versions as JSON')
    .example('trunkline outdated', `trunkline outdated --json | jq '.servers[] | select(.installed != .wanted)'`)
    .runs<{ json: true }>(async ({ settings, options }) => {
      const { outdated } = await import('./packages/outdated.js');
      return await outdated(settings, { isJson: options.json === true });
    });
