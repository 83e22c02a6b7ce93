import { logLines } from '../files/log-lines.js';
import { isRecord } from '../json/is-record.js';
import { parseJson } from '../json/parse-json.js';
import { MAX_LOG_FILES } from '../observe/log-file.js';
import { toText } from '../observe/log-text.js';
import { type Finding, finding } from './finding.js';

const RECENT_MS = 24 * 60 * 60 * 1_000;
const WARNING = 40;
const MAX_SHOWN = 5;

/** What went wrong in the last day, from the log of the hub. */
export async function checkRecentFaults(logFile: string, now: number): Promise<Finding[]> {
  const faults: string[] = [];
  for await (const line of logLines({ file: logFile, maxFiles: MAX_LOG_FILES, isFollowed: false })) {
    const record = parseJson(line);
    if (!isRecord(record) || typeof record.level !== 'number' || record.level < WARNING) continue;
    const at = typeof record.time === 'number' ? record.time : Date.parse(String(record.time));
    if (now - at <= RECENT_MS) faults.push(toText(record).split('\n')[0] ?? '');
  }
  if (faults.length === 0) return [];
  const count = faults.length === 1 ? 'one warning or error' : `${faults.length} warnings and errors`;
  const text = `the log of the hub has ${count} of the last 24 hours`;
  return [finding('TL-RECENT-FAULTS', text, { evidence: faults.slice(-MAX_SHOWN) })];
}
