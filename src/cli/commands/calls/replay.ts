import { createInterface } from 'node:readline';
import type { GlobalOptions } from '../../../app/global-options.js';
import { openPipe } from '../../../app/open-pipe.js';
import { readConfig } from '../../../app/read-config.js';
import { interceptors } from '../../../extras/interceptors/index.js';
import {
  type ClientReplayOptions,
  differenceText,
  type ReplayResult,
  replayClients,
} from '../../../extras/record/client-replay.js';
import type { RecordedEntry, Recording } from '../../../extras/record/recording-file.js';
import { ServerScript, StandIn } from '../../../extras/record/stand-in.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { packageFolders } from '../../../state/user-files.js';
import { toBytes } from '../../../wire/json/json-text.js';
import { hintFor } from '../../../wire/json/suggest.js';
import type { Invocation } from '../../command.js';
import { answer, endWithReader, tell } from '../../output.js';
import { openRecording } from './record.js';
import { composeOnce, openQuietLog, runCommand } from './run-once.js';

interface ReplayOptions {
  asServer: string;
  asClient: true;
  ignore: string;
}

/** `trunkline replay FILE`: replays a recording as a server or as its clients. */
export async function replay({ settings, words, options, isJson }: Invocation<ReplayOptions>): Promise<number> {
  const [file = ''] = words;
  const { asServer, asClient = false, ignore } = options;
  if ((asServer !== undefined) === asClient) {
    const hint = 'write `--as-server SERVER` to stand in for a server, or `--as-client` to test the servers';
    throw new UsageError('`trunkline replay` needs to know what to replay', hint);
  }
  if (asServer === undefined) return await replayClient(settings, file, { ignored: ignore?.split(',') ?? [], isJson });
  if (ignore === undefined && !isJson) return await replayServer(file, asServer);
  const option = isJson ? '--json' : '--ignore';
  throw new UsageError(`\`trunkline replay --as-server\` takes no \`${option}\``, 'leave it out');
}

/** `trunkline replay FILE --as-server NAME`: an MCP server on stdin and stdout that answers as in the recording. */
async function replayServer(file: string, server: string): Promise<number> {
  const recording = await openRecording(file);
  const script = new ServerScript(recording.entries, server);
  if (script.scenes.length === 0) throw notRecorded(server, recording);
  endWithReader();
  const standIn = new StandIn({ script, server, send: (text) => process.stdout.write(`${text}\n`) });
  for await (const line of createInterface({ input: process.stdin })) standIn.receive(line);
  return EXIT.ok;
}

function notRecorded(server: string, { entries }: Recording): UsageError {
  const servers = new Set(entries.flatMap(({ dir, server: key }) => (dir === 'g>s' && key !== undefined ? [key] : [])));
  const all = servers.size === 0 ? 'it has no messages of servers' : `its servers are: ${[...servers].join(', ')}`;
  return new UsageError(`the recording has no server \`${server}\``, hintFor(server, servers, all));
}

/** Longest wait of the first list for all servers, in milliseconds, so that no answer depends on how fast a server starts. */
const STARTUP_WAIT_MS = 300_000;
const TIMEOUT_MS = 120_000;
/** Members of answers that differ from run to run, because they contain the version of Trunkline and the running servers. */
const ALWAYS_IGNORED = ['serverInfo', 'instructions'];

/** `trunkline replay FILE --as-client`: sends recorded messages of clients again, and compares the answers with the recorded ones. */
async function replayClient(
  settings: GlobalOptions,
  file: string,
  { ignored, isJson }: { readonly ignored: readonly string[]; readonly isJson: boolean },
): Promise<number> {
  const { entries } = await openRecording(file);
  // Leaves out clients of `/mcp/KEY`, because their lists differ from those of a client on stdin, which this command plays.
  const ofAll = entries.filter(({ dir, server }) => server === undefined || dir === 'g>s' || dir === 's>g');
  const log = openQuietLog(settings);
  const read = await readConfig(settings);
  const config = { ...read, gateway: { ...read.gateway, startupWaitMs: STARTUP_WAIT_MS } };
  const composition = composeOnce(config, log, packageFolders(), false, { features: [interceptors] });
  const connect: ClientReplayOptions['connect'] = (receive) => {
    const pipe = openPipe(composition, (message) => receive(Buffer.from(message).toString()));
    return { send: (text) => pipe.send(toBytes(text)), close: () => pipe.close() };
  };
  return await runCommand(composition, log, async () => {
    await composition.start();
    const result = await replayClients({
      entries: ofAll,
      connect,
      timeoutMs: TIMEOUT_MS,
      ignored: new Set([...ALWAYS_IGNORED, ...ignored]),
    });
    if (ofAll.length < entries.length) tell(leftOutText(entries));
    return await answer(isJson, result, () => resultText(result), result.findings.length > 0 ? EXIT.failed : EXIT.ok);
  });
}

function leftOutText(entries: readonly RecordedEntry[]): string {
  const keys = new Set(entries.flatMap(({ dir, server }) => (dir === 'c>g' && server !== undefined ? [server] : [])));
  return `Clients that were connected to one server alone are not replayed: ${[...keys].map((key) => `/mcp/${key}`).join(', ')}.`;
}

/** Lists the differences, and sums up in the last line. */
export function resultText({ compared, skipped, findings }: ReplayResult): string {
  const lines = findings.flatMap(({ line, request, differences }) => [
    `${request} (line ${line}):${differences.length === 0 ? ' no answer' : ''}`,
    ...differences.map((each) => `  ${differenceText(each)}`),
  ]);
  const own = skipped === 0 ? '' : `, ${skipped} answers of Trunkline's own tools not compared`;
  return [...lines, `${compared} answers compared, ${findings.length} different${own}.`].join('\n');
}
