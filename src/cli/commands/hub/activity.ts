import { existsSync } from 'node:fs';
import cliTruncate from 'cli-truncate';
import { EXIT } from '../../../errors/usage-error.js';
import { logLines } from '../../../files/log-lines.js';
import { isRecord } from '../../../json/is-record.js';
import { parseJson } from '../../../json/parse-json.js';
import { printable } from '../../../json/printable.js';
import { type LoggedCall, MAX_CALL_FILES } from '../../../record/call-log.js';
import { callLogFile } from '../../../state/user-files.js';
import { print, tell } from '../../output.js';

export interface ActivityOptions {
  readonly server: string | undefined;
  readonly isFollowed: boolean;
  readonly isJson: boolean;
}

/** `trunkline activity`: shows the call log, one line a call. */
export async function activity({ server, isFollowed, isJson }: ActivityOptions): Promise<number> {
  const file = callLogFile();
  if (!existsSync(file) && !isFollowed) {
    tell(`There is no call log at ${file}. The setting \`gateway: { callLog: metadata }\` turns it on.`);
    return EXIT.ok;
  }
  // `head` closes its end early.
  process.stdout.once('error', () => process.exit(EXIT.ok));
  const { isTTY, columns = 80 } = process.stdout;
  for await (const line of logLines({ file, maxFiles: MAX_CALL_FILES, isFollowed })) {
    const text = activityText(line, server);
    if (text === undefined) continue;
    if (isJson) await print(line);
    else await print(isTTY ? cliTruncate(text, columns) : text);
  }
  return EXIT.ok;
}

/** A line of the call log for a person. `undefined` if it is not wanted, or was not written whole. */
export function activityText(line: string, server: string | undefined): string | undefined {
  const value = parseJson(line);
  if (!isRecord(value) || typeof value.time !== 'string') return undefined;
  const at = new Date(value.time);
  const time = `${at.toLocaleDateString('sv')} ${at.toTimeString().slice(0, 8)}`;
  if (typeof value.dropped === 'number')
    return `${time} ${value.dropped} calls are missing here: the disk was too slow or full`;
  const call = value as unknown as LoggedCall;
  if (server !== undefined && call.server !== server) return undefined;
  const { outcome, reason, ms, client, session, method, tool } = call;
  const what = method === 'tools/call' && tool !== undefined ? tool : [method, tool].filter(Boolean).join(' ');
  const how = reason === undefined ? outcome : `${outcome} (${reason})`;
  const sizes = `${call.in} B in, ${call.out} B out`;
  return printable(`${time} ${call.server ?? '-'} ${what}: ${how}, ${ms} ms, ${sizes}, ${client} ${session}`);
}
