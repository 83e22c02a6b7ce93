import { type DefineCommand, GROUPS } from '../command.js';

export const checkCommand: DefineCommand = (program) =>
  program
    .command('check')
    .argument('[SERVER...]', 'keys of servers; without them, all servers')
    .helpGroup(GROUPS.tools)
    .summary('start every server once and report problems')
    .description(
      'Checks the configuration and starts every server, or the named servers, once. Shows the time to ready and the number of listed, quarantined and denied tools. For each server that fails, shows the cause, its last output, and what to do.',
    )
    .option('--json', 'print the result as JSON')
    .example('trunkline check', 'trunkline check files memory --config ~/servers.yaml')
    .example(`trunkline check --json | jq '.servers[] | select(.state != "ready")'`)
    .runs<{ json: true }>(async ({ settings, words, options }) => {
      const { check } = await import('./config/check.js');
      return await check(settings, words, { isJson: options.json === true });
    });
