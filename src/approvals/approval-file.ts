import { createHash } from 'node:crypto';
import { readPrivateFile } from '../files/private-file.js';
import { createFileSync, replaceFileSync } from '../files/whole-file.js';
import { isRecord } from '../json/is-record.js';

/** One definition of a tool that was approved. */
export interface ApprovedDefinition {
  readonly digest: string;
  /** What it was, to be compared with what it becomes; absent when it is too long to be kept. */
  readonly text?: string;
}

/**
 * What is approved, by the names of the tools, the last one approved coming last. A tool may have several definitions: a
 * server can describe it to one kind of client in other words than to another.
 */
export type Approved = ReadonlyMap<string, readonly ApprovedDefinition[]>;

/** A file of approvals that is there but cannot be used. It is never ignored: a server could be trusted anew. */
export class ApprovalFileError extends Error {
  override readonly name = 'ApprovalFileError';
}

/** Of the form, not of Trunkline. */
const FORMAT = 1;
const MAX_FILE_BYTES = 32 * 1024 * 1024;
/** Twice as many as a list may have; those that were approved longest ago go first. */
const MAX_TOOLS = 2_000;
const MAX_DEFINITIONS = 8;
/** As long as a schema may be. Beyond that only the digest is kept. */
const MAX_TEXT_LENGTH = 64 * 1024;
/** Of all texts together; the last approved are kept. */
const MAX_TEXTS_LENGTH = 4 * 1024 * 1024;

/** SHA-256 of a definition, by which it is known again. */
export function digestOf(definition: string): string {
  return createHash('sha256').update(definition).digest('hex');
}

/** What is approved once these definitions are as well, by the names of their tools. */
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

/** The approvals of one server in a file that is written as a whole, and that nobody but this user can use. */
export class ApprovalFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** What is approved; `undefined` when there is no file. Throws an `ApprovalFileError`. */
  read(): Approved | undefined {
    const found = readPrivateFile(this.path, MAX_FILE_BYTES);
    if (found.kind === 'absent') return undefined;
    if (found.kind === 'unusable') throw new ApprovalFileError(`${this.path} is not used: ${found.reason}`);
    const approved = parse(Buffer.from(found.bytes).toString());
    if (approved === undefined)
      throw new ApprovalFileError(`${this.path} is not used: it is broken or of another format`);
    return approved;
  }

  /** Makes the file. Returns whether there was none; one that is there stays as it is. */
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
  const kept = [...approved].slice(-MAX_TOOLS).reverse();
  const fitting = kept.map(([name, definitions]) => {
    const each = definitions.toReversed().map(({ digest, text = '' }): ApprovedDefinition => {
      const isKept = text !== '' && text.length <= Math.min(MAX_TEXT_LENGTH, freeSpace);
      if (isKept) freeSpace -= text.length;
      return isKept ? { digest, text } : { digest };
    });
    return [name, each.reverse()] as const;
  });
  return new Map(fitting.reverse());
}

function parse(text: string): Approved | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
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
