import { Document, isSeq, visit } from 'yaml';
import { printable } from '../../json/printable.js';

/** A key and its value, to be written into a configuration. */
export interface PairText {
  readonly key: string;
  readonly value: unknown;
  /** Stands behind the key, where comments are possible. */
  readonly comment?: string | undefined;
  /** The comment stands behind the first key inside of the value instead. */
  readonly isCommentInside?: boolean;
}

/** The pair as indented lines of YAML. */
export function blockLines({ key, value, comment, isCommentInside }: PairText, indent: number): string[] {
  const document = new Document({ [key]: value });
  // A list of a few words is easier to read on one line.
  visit(document, {
    Seq: (_, node) => {
      if (isSeq(node) && JSON.stringify(node.toJSON()).length <= LONGEST_LIST) node.flow = true;
    },
  });
  const text = document.toString({ indent, lineWidth: 0, blockQuote: false, flowCollectionPadding: false });
  const lines = text.trimEnd().split('\n');
  const commented = isCommentInside === true ? 1 : 0;
  return lines.map((line, at) => {
    return comment === undefined || at !== commented ? line : `${line} # ${printable(comment)}`;
  });
}

const LONGEST_LIST = 80;

/** The pair as in JSON, on one line without `unit`. */
export function flowText({ key, value }: PairText, unit: string | undefined): string {
  return `${JSON.stringify(key)}: ${unit === undefined ? oneLine(value) : JSON.stringify(value, undefined, unit)}`;
}

/** JSON with spaces, as people write it on one line. */
function oneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${oneLine(each)}`);
  return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`;
}
