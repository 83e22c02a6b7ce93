import { isDeepStrictEqual } from 'node:util';
import { type Document, isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml';
import { isRecord } from '../../json/is-record.js';
import { didYouMean, suggest } from '../../json/suggest.js';
import type { ServersKey } from '../file/checked-file.js';
import { ConfigError } from '../file/config-error.js';
import { parseYaml } from '../file/yaml-source.js';
import {
  addFirstPair,
  addPair,
  appendPair,
  applyEdit,
  hasComment,
  NOT_EDITABLE,
  removePair,
  type TextEdit,
} from './edit-map.js';

/** An entry as it is written into the file. */
export type NewEntry = Readonly<Record<string, unknown>>;

export type ConfigEdit =
  | { readonly kind: 'add'; readonly key: string; readonly entry: NewEntry; readonly comment?: string | undefined }
  | { readonly kind: 'remove'; readonly key: string }
  | { readonly kind: 'disable'; readonly key: string; readonly isDisabled: boolean };

/**
 * The text of a configuration with one server added, removed or disabled. All other bytes stay: comments, order and
 * indentation. Works for YAML and JSON. An added server can be removed again without a trace.
 *
 * Throws a `ConfigError` if there is no such server, if the text has mistakes of syntax, or if it is written in a way that
 * cannot be edited so. Whether the result is a valid configuration is for the caller to check.
 */
export function editConfig(text: string, file: string, edit: ConfigEdit): string {
  const document = parse(text);
  const { value } = document.errors.length > 0 ? parseYaml(text, file) : { value: valueIn(text) };
  const root = rootKey(value);
  if (edit.kind !== 'add') requireServer(edit.key, value, root, file);
  const edited = attempt(() => applied(text, document, root, edit));
  if (
    edited === undefined ||
    !isDeepStrictEqual(
      meaningOf(valueIn(edited), root, edit.key),
      meaningOf(expected(value, root, edit), root, edit.key),
    )
  ) {
    throw new ConfigError('config-invalid', file, [
      {
        message: `the servers are written in a notation that Trunkline cannot edit without changing more than \`${edit.key}\``,
        hint: 'edit the file yourself; `trunkline check` shows whether it is right',
      },
    ]);
  }
  return edited;
}

/** The entries of a configuration as they stand in its text; none if the text has mistakes. */
export function entriesIn(text: string): Readonly<Record<string, unknown>> {
  const value = valueIn(text);
  const entries = isRecord(value) ? value[rootKey(value)] : undefined;
  return isRecord(entries) ? entries : {};
}

/** What `defaults.envFile` names, if anything. */
export function sharedEnvFile(text: string): string | undefined {
  const value = valueIn(text);
  const defaults = isRecord(value) ? value.defaults : undefined;
  return isRecord(defaults) && typeof defaults.envFile === 'string' ? defaults.envFile : undefined;
}

function parse(text: string): Document.Parsed {
  return parseDocument(text, { prettyErrors: false, stringKeys: true, uniqueKeys: false });
}

function valueIn(text: string): unknown {
  const document = parse(text);
  return document.errors.length > 0 ? undefined : attempt((): unknown => document.toJS());
}

function rootKey(value: unknown): ServersKey {
  return isRecord(value) && Object.hasOwn(value, 'mcpServers') ? 'mcpServers' : 'servers';
}

function requireServer(key: string, value: unknown, root: ServersKey, file: string): void {
  const entries = isRecord(value) ? value[root] : undefined;
  const keys = isRecord(entries) ? Object.keys(entries) : [];
  if (keys.includes(key)) return;
  const nearest = suggest(key, keys);
  const known = keys.length === 0 ? 'it has no servers' : `its servers are ${keys.join(', ')}`;
  throw new ConfigError('config-invalid', file, [
    { message: `there is no server \`${key}\``, hint: nearest === undefined ? known : didYouMean(nearest) },
  ]);
}

function applied(text: string, { contents }: Document.Parsed, root: ServersKey, edit: ConfigEdit): string {
  const textEdit = edit.kind === 'add' ? adding(text, contents, root, edit) : changing(text, contents, root, edit);
  return textEdit === undefined ? text : applyEdit(text, textEdit);
}

function adding(
  text: string,
  contents: unknown,
  root: ServersKey,
  { key, entry, comment }: Extract<ConfigEdit, { kind: 'add' }>,
): TextEdit {
  const pair = { key, value: entry, comment };
  const whole = { key: root, value: { [key]: entry }, comment, isCommentInside: true };
  if (contents === null || (isScalar(contents) && contents.source === '')) return appendPair(text, whole);
  if (!isMap(contents)) throw NOT_EDITABLE;
  const servers = pairOf(contents, root);
  if (servers === undefined) return addPair(text, contents, whole);
  if (isMap(servers.value)) return addPair(text, servers.value, pair);
  const isEmpty = servers.value === null || (isScalar(servers.value) && (servers.value.source ?? '') === '');
  if (!isEmpty) throw NOT_EDITABLE;
  return addFirstPair(text, servers, pair);
}

function changing(
  text: string,
  contents: unknown,
  root: ServersKey,
  edit: Exclude<ConfigEdit, { kind: 'add' }>,
): TextEdit | undefined {
  const servers = isMap(contents) ? pairOf(contents, root)?.value : undefined;
  const server = isMap(servers) ? pairOf(servers, edit.key) : undefined;
  if (!isMap(servers) || server === undefined) throw NOT_EDITABLE;
  if (edit.kind === 'remove') return removePair(text, servers, server);
  if (!isMap(server.value)) throw NOT_EDITABLE;
  return disabling(text, server.value, edit.isDisabled);
}

function disabling(text: string, entry: YAMLMap, isDisabled: boolean): TextEdit | undefined {
  const pair = pairOf(entry, 'disabled');
  if (pair === undefined) return isDisabled ? addPair(text, entry, { key: 'disabled', value: true }) : undefined;
  const { value } = pair;
  if (!isScalar(value) || value.range == null) throw NOT_EDITABLE;
  if (value.value === isDisabled) return undefined;
  // A comment there may say why.
  if (!isDisabled && entry.flow !== true && !hasComment(text, pair)) return removePair(text, entry, pair);
  if (!isDisabled && entry.flow === true && entry.items.length > 1) return removePair(text, entry, pair);
  const [start, end] = value.range;
  return { start, end, text: String(isDisabled) };
}

function pairOf(map: YAMLMap, key: string): Pair | undefined {
  return map.items.find((pair) => isScalar(pair.key) && pair.key.value === key);
}

/** What the file must say after the edit. */
function expected(value: unknown, root: ServersKey, edit: ConfigEdit): unknown {
  const file = isRecord(value) ? value : {};
  const { [edit.key]: entry, ...others } = isRecord(file[root]) ? file[root] : {};
  switch (edit.kind) {
    case 'add':
      return { ...file, [root]: { ...others, [edit.key]: edit.entry } };
    case 'remove':
      return { ...file, [root]: others };
    default: {
      const changed = { ...(isRecord(entry) && entry), disabled: edit.isDisabled };
      return { ...file, [root]: { ...others, [edit.key]: changed } };
    }
  }
}

/** The same without `disabled: false`, which means nothing. */
function meaningOf(value: unknown, root: ServersKey, key: string): unknown {
  if (!isRecord(value) || !isRecord(value[root])) return value;
  const { [key]: entry, ...others } = value[root];
  if (!isRecord(entry) || entry.disabled !== false) return value;
  const { disabled: _, ...rest } = entry;
  return { ...value, [root]: { ...others, [key]: rest } };
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    // The library refuses aliases that it cannot resolve, or too many of them.
    if (error === NOT_EDITABLE || error instanceof ReferenceError) return undefined;
    throw error;
  }
}
