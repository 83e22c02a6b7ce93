import { createHash } from 'node:crypto';
import { privateFile, readRegularFileSync } from '../files/regular-file.js';
import { createFileSync, replaceFileSync } from '../files/whole-file.js';
import { isRecord } from '../json/is-record.js';
import { parseJson } from '../json/parse-json.js';

/** One approved definition of a tool. */
export interface ApprovedDefinition {
  readonly digest: string;
  /** The definition, to show the difference to a later one; absent when it is too long to store. */
  readonly text?: string;
}

/**
 * Approved definitions by tool name, in the order of approval. A tool can have several: a server may describe the same
 * tool differently to different clients.
 */
export type Approved = ReadonlyMap<string, readonly ApprovedDefinition[]>;

/** An approval file that exists and cannot be used. It must not be ignored: all tools would be approved as first use. */
export class ApprovalFileError extends Error {
  override readonly name = 'ApprovalFileError';
}

/** Version of the file format. */
const FORMAT = 1;
const MAX_FILE_BYTES = 32 * 1024 * 1024;
/** Twice the limit of a list; the oldest approvals are dropped first. */
const MAX_TOOLS = 2_000;
const MAX_DEFINITIONS = 8;
/** The size limit of a schema. Of a longer definition only the digest is stored. */
const MAX_TEXT_LENGTH = 64 * 1024;
/** Limit for all texts together; the latest approvals keep theirs. */
const MAX_TEXTS_LENGTH = 4 * 1024 * 1024;

/** SHA-256 of a definition; approvals are compared by it. */
export function digestOf(definition: string): string {
  return createHash('sha256').update(definition).digest('hex');
}

/** Returns the approvals with these definitions, given as pairs of tool name and definition, added. */
export function withApproved(before: Approved, definitions: Iterable<readonly [string, string]>): Approved {
  const after = new Map(before);
  for (const [name, text] of definitions) {
    const digest = digestOf(text);
    const others = (after.get(name) ?? []).filter((other) => other.digest !== digest);
    after.delete(name);
    after.set(name, [...others, { digest, text }].slice(-MAX_DEFINITIONS));
  }
  return bounded(after);
}

/** Stores the approvals of one server in a file that only this user can read or write. */
export class ApprovalFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Reads the approvals; `undefined` when there is no file. Throws an `ApprovalFileError`. */
  read(): Approved | undefined {
    const found = readRegularFileSync(this.path, privateFile(MAX_FILE_BYTES));
    if (found.kind === 'absent') return undefined;
    if (found.kind === 'unusable') throw new ApprovalFileError(`${this.path} is not used: ${found.reason}`);
    const approved = parse(found.bytes.toString());
    if (approved === undefined)
      throw new ApprovalFileError(`${this.path} is not used: it is damaged or has another format`);
    return approved;
  }

  /** Creates the file. Returns false when it exists already; it is not changed then. */
  create(approved: Approved): boolean {
    return createFileSync(this.path, serialize(approved), { flush: true });
  }

  replace(approved: Approved): void {
    replaceFileSync(this.path, serialize(approved), { flush: true });
  }
}

function serialize(approved: Approved): string {
  return `${JSON.stringify({ format: FORMAT, tools: [...approved] })}\n`;
}

function bounded(approved: Approved): Approved {
  let freeSpace = MAX_TEXTS_LENGTH;
  const latest = [...approved].slice(-MAX_TOOLS).reverse();
  const fitting = latest.map(([name, definitions]) => {
    const each = definitions.toReversed().map(({ digest, text = '' }): ApprovedDefinition => {
      const fits = text !== '' && text.length <= Math.min(MAX_TEXT_LENGTH, freeSpace);
      if (fits) freeSpace -= text.length;
      return fits ? { digest, text } : { digest };
    });
    return [name, each.reverse()] as const;
  });
  return new Map(fitting.reverse());
}

function parse(text: string): Approved | undefined {
  const value = parseJson(text);
  if (!isRecord(value) || value.format !== FORMAT || !Array.isArray(value.tools)) return undefined;
  const { tools } = value;
  return tools.every(isTool) ? new Map(tools) : undefined;
}

function isTool(value: unknown): value is readonly [string, readonly ApprovedDefinition[]] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [name, definitions] = value;
  return typeof name === 'string' && Array.isArray(definitions) && definitions.every(isDefinition);
}

function isDefinition(value: unknown): value is ApprovedDefinition {
  if (!isRecord(value) || typeof value.digest !== 'string') return false;
  return value.text === undefined || typeof value.text === 'string';
}
