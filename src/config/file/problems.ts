import * as z from 'zod/mini';
import { didYouMean, suggest } from '../../json/suggest.js';
import { formatPath } from '../resolve/server-fault.js';
import { usableServerKey } from '../schema/server-key.js';
import type { ConfigProblem } from './config-error.js';
import type { Path } from './yaml-nodes.js';
import type { YamlSource } from './yaml-source.js';

type Issue = z.core.$ZodIssue;

/** Converts the issues of the schema to problems with messages and positions, in the order of the file. */
export function toProblems(issues: readonly Issue[], schema: z.ZodMiniType, source: YamlSource): ConfigProblem[] {
  // A key that seems to be missing may be present under a misspelled name.
  const misspelled = new Set(
    issues.filter(({ code }) => code === 'unrecognized_keys').map(({ path }) => formatPath(path)),
  );
  return issues
    .filter((issue) => !(isAboutKey(issue) && misspelled.has(formatPath(issue.path))))
    .flatMap((issue) => toProblem(issue, schema, source))
    .sort((one, other) => (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0));
}

/** A hint for a key that is not among the known ones. */
export function unknownKeyHint(key: string, known: readonly string[]): string {
  const nearest = suggest(key, known);
  return nearest === undefined ? `expected one of ${known.join(', ')}` : didYouMean(nearest);
}

function toProblem(issue: Issue, schema: z.ZodMiniType, source: YamlSource): ConfigProblem[] {
  const { path } = issue;
  const place = path.length === 0 ? '' : `${formatPath(path)}: `;
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(schema, path);
    return issue.keys.map((key) => ({
      message: `${place}unknown key \`${key}\``,
      hint: unknownKeyHint(key, known),
      ...source.positionOfKey([...path, key]),
    }));
  }
  if (issue.code === 'invalid_key') {
    // Names of variables are keys as well, but only keys of servers have an obvious correction.
    const usable = path.at(-2) === 'env' ? undefined : usableServerKey(String(path.at(-1)));
    return [
      {
        message: `${place}${issue.issues[0]?.message ?? issue.message}`,
        ...(usable !== undefined && { hint: didYouMean(usable) }),
        ...source.positionOfKey(path),
      },
    ];
  }
  const position = isAboutKey(issue) ? source.positionOfKey(path) : source.positionOf(path);
  return [{ message: `${place}${issue.message}`, ...position }];
}

/** Whether the schema marked the issue as one to report at a key instead of a value. */
function isAboutKey(issue: Issue): boolean {
  return issue.code === 'custom' && issue.params?.aboutKey === true;
}

/** The keys that the schema knows for the map at `path`. */
function keysAt(schema: z.ZodMiniType, path: Path): string[] {
  let current: unknown = schema;
  for (const step of path) {
    current = unwrap(current);
    if (current instanceof z.ZodMiniObject)
      current = new Map<PropertyKey, unknown>(Object.entries(current.shape)).get(step);
    else if (current instanceof z.ZodMiniRecord) current = current._zod.def.valueType;
  }
  current = unwrap(current);
  return current instanceof z.ZodMiniObject ? Object.keys(current.shape) : [];
}

function unwrap(schema: unknown): unknown {
  return schema instanceof z.ZodMiniExactOptional ? schema._zod.def.innerType : schema;
}
