import type { RawEntry } from '../bridge/list-pages.js';
import { readString, readText, type Span, toBytes, visitMembers } from '../jsonrpc/json-text.js';
import { join } from '../jsonrpc/message.js';
import { splice } from '../jsonrpc/splice.js';
import { exposedName, type Sha256 } from '../mcp/exposed-name.js';
import { checkTool } from '../mcp/tool-check.js';
import type { ToolPolicy } from './tool-policy.js';

/** One tool of one server, ready to be listed. */
export interface ExposedTool {
  readonly exposed: string;
  readonly original: string;
  /** The tool as the server spelt it, under its exposed name; `undefined` when it is withheld from lists. */
  readonly entry: Uint8Array | undefined;
}

/** A tool that is not listed, and why. It can still be called by its exposed name, if it has one. */
export interface WithheldTool {
  readonly name: string;
  readonly reason: string;
}

/** What one server contributes to the merged list; made once for each list that the server sends. */
export interface ServerTools {
  readonly tools: readonly ExposedTool[];
  readonly withheld: readonly WithheldTool[];
  /** Names that the configuration does not let through. */
  readonly denied: readonly string[];
  /** Why the list ends early, if it does. */
  readonly truncated: string | undefined;
}

export const NO_TOOLS: ServerTools = { tools: [], withheld: [], denied: [], truncated: undefined };

export interface ExposureRules {
  readonly key: string;
  readonly prefix: string;
  readonly policy: ToolPolicy;
  readonly sha256: Sha256;
}

/** Checks each tool alone, so that a bad one hides no other, and puts the exposed names in. */
export function exposeTools(
  list: { readonly entries: readonly RawEntry[]; readonly truncated: string | undefined },
  { key, prefix, policy, sha256 }: ExposureRules,
): ServerTools {
  const tools: ExposedTool[] = [];
  const withheld: WithheldTool[] = [];
  const denied: string[] = [];
  const seen = new Set<string>();

  list.entries.forEach((raw, index) => {
    const verdict = checkTool(JSON.parse(readText(raw.bytes, raw.span)));
    const { name } = verdict;
    if (name === undefined) {
      withheld.push({ name: `#${index + 1}`, reason: verdict.kind === 'unsound' ? verdict.reason : '' });
      return;
    }
    if (!policy(name)) {
      denied.push(name);
      return;
    }
    if (seen.has(name)) {
      withheld.push({ name, reason: 'the server lists this name twice; the first one counts' });
      return;
    }
    seen.add(name);
    const exposed = exposedName(key, prefix, name, sha256);
    if (verdict.kind === 'unsound') {
      withheld.push({ name, reason: verdict.reason });
      tools.push({ exposed, original: name, entry: undefined });
    } else {
      tools.push({ exposed, original: name, entry: rename(raw, exposed, verdict.nullMembers) });
    }
  });
  return { tools, withheld, denied, truncated: list.truncated };
}

/** The tool's own bytes but for the name, and without the members that are null and must not be. */
function rename({ bytes, span }: RawEntry, exposed: string, nullMembers: readonly string[]): Uint8Array {
  const members: { name: string; key: Span; value: Span }[] = [];
  visitMembers(bytes, span.start, Number.POSITIVE_INFINITY, (key, value) => {
    members.push({ name: readString(bytes, key), key, value });
  });
  const edits = members
    .filter((member) => member.name === 'name')
    .map(({ value }) => ({ span: value, text: toBytes(JSON.stringify(exposed)) }));
  if (nullMembers.length === 0) return splice({ bytes, span, edits });

  const kept = members.filter((member) => !nullMembers.includes(member.name));
  const parts = kept.flatMap(({ key, value }, index) => {
    const member = { bytes, span: { start: key.start, end: value.end } };
    const ownEdits = edits.filter((edit) => edit.span === value);
    return [toBytes(index === 0 ? '' : ','), splice({ ...member, edits: ownEdits })];
  });
  return join([toBytes('{'), ...parts, toBytes('}')]);
}
