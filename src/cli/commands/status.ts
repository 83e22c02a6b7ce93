import { type DefineCommand, GROUPS } from '../command.js';

export const statusCommand: DefineCommand = (program) =>
  program
    .command('status')
    .helpGroup(GROUPS.running)
    .summary('show what is wrong with the running servers, and what to do')
    .description(
      `Shows the status of the running hub: which servers have a problem, why, and what to do.

With --watch, a terminal shows the servers with their state, calls per second, median latency, memory and last error, and the clients. Keys: arrows choose a server, r restarts it, l shows its last output, a says how to approve its tools, q quits. Elsewhere, --watch writes the status again at each change.`,
    )
    .option('--json', 'print the status as JSON')
    .option('--watch', 'go on until q or Ctrl-C, and show what changes')
    .example('trunkline status', 'trunkline status --watch', 'trunkline status --json | jq .servers')
    .runs<{ json: true; watch: true }>(async ({ settings, options }) => {
      const { status } = await import('./hub/status.js');
      return await status(settings, { isJson: options.json === true, isWatched: options.watch === true });
    });
