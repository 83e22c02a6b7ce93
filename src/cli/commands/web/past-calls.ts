import { type LoggedCall, MAX_CALL_FILES } from '../../../extras/record/call-log.js';
import { logLines } from '../../../host/files/log-lines.js';
import type { CallRow } from '../../../web/server/contract.js';
import { isRecord, parseJson } from '../../../wire/json/json-value.js';

const MAX_CALLS = 500;

/** The latest calls of a configuration in the call log, which all configurations of the user share. The oldest is first. */
export async function readPastCalls(logFile: string, configFile: string): Promise<readonly CallRow[]> {
  const rows: CallRow[] = [];
  // Most lines can belong to other configurations, and are not parsed.
  const mark = `"config":${JSON.stringify(configFile)}`;
  let lines: string[] = [];
  for await (const line of logLines({ file: logFile, maxFiles: MAX_CALL_FILES, isFollowed: false })) {
    if (line.includes(mark)) lines.push(line);
    if (lines.length >= 2 * MAX_CALLS) lines = lines.slice(-MAX_CALLS);
  }
  for (const line of lines.slice(-MAX_CALLS)) {
    const call = parseJson(line);
    if (isRecord(call) && call.config === configFile) rows.push(rowOf(call as unknown as LoggedCall, rows.at(-1)));
  }
  return rows;
}

function rowOf(call: LoggedCall, before: CallRow | undefined): CallRow {
  const { client, session, server = null, method, tool = null, outcome, reason = null, ms } = call;
  const at = Date.parse(call.time);
  return {
    // Keeps the id below those of the calls of a hub, which count up from a time with three more digits.
    id: Math.max(at * 100, (before?.id ?? 0) + 1),
    at,
    session,
    client: client.replace(/\/(?=[^/]*$)/, ' ').trim(),
    server,
    method,
    name: tool,
    outcome,
    reason,
    ms,
    queueMs: null,
    serverMs: null,
    isLogged: true,
    bytesIn: call.in,
    bytesOut: call.out,
  };
}
