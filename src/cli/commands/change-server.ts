import { type CliCommand, type DefineCommand, GROUPS } from '../command.js';

export const removeCommand: DefineCommand = (program) =>
  define(program, 'remove', 'remove a server from the configuration').description(
    'Removes a server from the configuration. Everything else in the file stays as it is.',
  );

export const enableCommand: DefineCommand = (program) =>
  define(program, 'enable', 'use a disabled server again').description('Makes Trunkline use a disabled server again.');

export const disableCommand: DefineCommand = (program) =>
  define(program, 'disable', 'ignore a server').description(
    'Makes Trunkline ignore a server, which stays in the configuration.',
  );

function define(program: CliCommand, command: 'remove' | 'enable' | 'disable', summary: string) {
  return program
    .command(command)
    .argument('<SERVER>', 'key of a server')
    .needs('the name of a server', 'see `trunkline check` for the names')
    .helpGroup(GROUPS.configuration)
    .summary(summary)
    .option('--json', 'print the result as JSON')
    .example(`trunkline ${command} files`)
    .runs<{ json: true }>(async ({ settings, words: [server], options }) => {
      const { changeServer } = await import('./config/change-server.js');
      return await changeServer(settings, command, server, options.json === true);
    });
}
