import { UsageError } from '../../errors/usage-error.js';
import { type DefineCommand, GROUPS } from '../command.js';

export const replayCommand: DefineCommand = (program) =>
  program
    .command('replay')
    .argument('<FILE>', 'a recording')
    .needs('a recording', 'write `trunkline replay FILE`')
    .helpGroup(GROUPS.messages)
    .summary('replay a recording as a server or as its clients')
    .description(
      'With --as-server: is an MCP server on stdin and stdout that answers as this server did in the recording. With --as-client: starts the configured servers, sends what the clients sent in the recording, compares the answers, and exits with 1 if any differs.',
    )
    .option('--as-server <SERVER>', 'stand in for this server')
    .option('--as-client', 'send what the clients sent, and compare the answers')
    .option('--ignore <MEMBERS>', 'with --as-client: members with these names, separated by commas, may differ')
    .option('--json', 'with --as-client: print the differences as JSON')
    .example('trunkline replay session.jsonl --as-server files')
    .example('trunkline replay session.jsonl --as-client --ignore requestTime')
    .runs<{ asServer: string; asClient: true; ignore: string; json: true }>(
      async ({ settings, words: [file = ''], options }) => {
        const { asServer, asClient = false, ignore, json = false } = options;
        if ((asServer !== undefined) === asClient) {
          const hint = 'write `--as-server SERVER` to stand in for a server, or `--as-client` to test the servers';
          throw new UsageError('`trunkline replay` needs to know what to replay', hint);
        }
        if (asServer !== undefined && (ignore !== undefined || json)) {
          const option = json ? '--json' : '--ignore';
          throw new UsageError(`\`trunkline replay --as-server\` takes no \`${option}\``, 'leave it out');
        }
        const { replayClient, replayServer } = await import('./calls/replay.js');
        if (asServer !== undefined) return await replayServer(file, asServer);
        return await replayClient(settings, file, { ignored: ignore?.split(',') ?? [], isJson: json });
      },
    );
