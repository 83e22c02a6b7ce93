import { chmodSync, existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { systemFault } from '../../host/errors/file-error.js';
import { type MemberPath, valueAt, withoutValue, withValue } from '../../host/files/edit/edit-text.js';
import { commentBehind } from '../../host/files/edit/edit-yaml.js';
import { FileRefusal, type Format, parseText } from '../../host/files/edit/parse-text.js';
import { createFileSync, replaceFileSync } from '../../host/files/whole-file.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { hintFor } from '../../wire/json/suggest.js';
import { checkFile, type ServersKey } from '../file/check-file.js';
import { ConfigError } from '../file/config-error.js';
import { readConfigText } from '../file/find-config.js';
import { parseYaml } from '../file/yaml-source.js';

export type NewEntry = Readonly<Record<string, unknown>>;

export type ConfigEdit =
  | { readonly kind: 'add'; readonly key: string; readonly entry: NewEntry; readonly comment?: string | undefined }
  | { readonly kind: 'remove'; readonly key: string }
  | {
      readonly kind: 'disable';
      readonly key: string;
      readonly isDisabled: boolean;
      /** The reason of `trunkline init`, which tries the server again. Written as a comment, where the format has comments. */
      readonly because?: string;
    }
  | {
      readonly kind: 'tools';
      readonly key: string;
      /** The lists that replace those of the file. `undefined` leaves a list as it is, `null` removes it. */
      readonly allow?: readonly string[] | null | undefined;
      readonly deny?: readonly string[] | null | undefined;
    };

/**
 * The text of a configuration, in YAML or JSON, with one server added, removed, disabled or with other tools. All other bytes stay, such as
 * comments, order and indentation. Removing an added server restores the text.
 *
 * Throws a `ConfigError` if there is no such server, if the text has mistakes of syntax, or if its notation cannot be
 * edited without other changes. Does not check whether the result is a valid configuration.
 */
export function editConfig(text: string, file: string, edit: ConfigEdit): string {
  const value = valueIn(text, () => parseYaml(text, file).value);
  const path = [rootKey(value), edit.key];
  // JSON is valid YAML, too, but an edit must keep its style.
  const format = parseJson(text) === undefined ? 'yaml' : 'json';
  if (edit.kind !== 'add') requireServer(edit.key, value, file);
  try {
    switch (edit.kind) {
      case 'add':
        return withValue(format, text, path, edit.entry, { comment: edit.comment });
      case 'remove':
        return withoutValue(format, text, path);
      case 'disable':
        return disabled(format, text, [...path, 'disabled'], valueAt(value, path), edit);
      case 'tools':
        return (['allow', 'deny'] as const).reduce((before, name) => {
          const list = edit[name];
          const at = [...path, 'tools', name];
          if (list === undefined) return before;
          return list === null ? withoutValue(format, before, at) : withValue(format, before, at, list);
        }, text);
    }
  } catch (error) {
    // The YAML library throws a `ReferenceError` for an unknown alias, and for too many aliases.
    if (!(error instanceof FileRefusal) && !(error instanceof ReferenceError)) throw error;
    throw new ConfigError('config-invalid', file, [
      {
        message: `the servers are written in a notation that Trunkline cannot edit without changing more than \`${edit.key}\``,
        hint: 'edit the file yourself; `trunkline check` shows whether it is right',
      },
    ]);
  }
}

/** The entries of a configuration before the check; none if the text has mistakes. */
export function entriesIn(text: string): Readonly<Record<string, unknown>> {
  const value = valueIn(text);
  const entries = isRecord(value) ? value[rootKey(value)] : undefined;
  return isRecord(entries) ? entries : {};
}

/** Whether servers behind a URL are used in this configuration. */
export function takesRemoteServers(text: string): boolean {
  return rootKey(valueIn(text)) === 'servers';
}

export function sharedEnvFile(text: string): string | undefined {
  const named = valueAt(valueIn(text), ['defaults', 'envFile']);
  return typeof named === 'string' ? named : undefined;
}

/** The content of a text; `undefined` if the text is empty. For a text with mistakes, the result of `otherwise`. */
function valueIn(text: string, otherwise: () => unknown = () => undefined): unknown {
  try {
    return parseText('yaml', text);
  } catch {
    return otherwise();
  }
}

function rootKey(value: unknown): ServersKey {
  return isRecord(value) && Object.hasOwn(value, 'mcpServers') ? 'mcpServers' : 'servers';
}

function requireServer(key: string, value: unknown, file: string): void {
  const entries = valueAt(value, [rootKey(value)]);
  const keys = isRecord(entries) ? Object.keys(entries) : [];
  if (keys.includes(key)) return;
  const known = keys.length === 0 ? 'it has no servers' : `its servers are ${keys.join(', ')}`;
  const problem = { message: `there is no server \`${key}\``, hint: hintFor(key, keys, known) };
  throw new ConfigError('config-invalid', file, [problem]);
}

/** Sets or removes `disabled: true`. A line with a comment of the user stays, with `false`, because the comment may give the reason. */
function disabled(
  format: Format,
  text: string,
  path: MemberPath,
  entry: unknown,
  { isDisabled, because }: Extract<ConfigEdit, { kind: 'disable' }>,
): string {
  const present = format === 'yaml' ? commentBehind(text, path) : undefined;
  const isOfInit = present?.startsWith(INIT_COMMENT) === true;
  if (isRecord(entry) && (entry.disabled ?? false) === isDisabled) {
    // Removes the comment of `trunkline init` when a user disables the server, so that it is not tried again.
    const isWanted = isDisabled && because === undefined && isOfInit;
    return isWanted ? withValue(format, withoutValue(format, text, path), path, true) : text;
  }
  const comment = because === undefined ? undefined : INIT_COMMENT + because;
  if (isDisabled) return withValue(format, text, path, true, { comment });
  return present !== undefined && !isOfInit ? withValue(format, text, path, false) : withoutValue(format, text, path);
}

/** The start of the comment behind `disabled: true` in an entry that `trunkline init` has disabled. */
const INIT_COMMENT = 'trunkline init tries it again: ';

/** The servers that `trunkline init` has disabled, with its reasons. Empty for a text with mistakes, and for JSON. */
export function disabledByInit(text: string): ReadonlyMap<string, string> {
  const root = rootKey(valueIn(text));
  const found = Object.entries(entriesIn(text)).flatMap(([key, entry]): [string, string][] => {
    if (!isRecord(entry) || entry.disabled !== true) return [];
    const comment = commentBehind(text, [root, key, 'disabled']);
    return comment?.startsWith(INIT_COMMENT) ? [[key, comment.slice(INIT_COMMENT.length)]] : [];
  });
  return new Map(found);
}

/** A configuration file as it was read for an edit. */
export interface OpenConfig {
  /** Absolute. */
  readonly file: string;
  /** Undefined if there is no file yet. */
  readonly text: string | undefined;
}

/** Reads the configuration file for an edit. Throws a `ConfigError` if the file exists and cannot be read. */
export function openConfig(file: string): OpenConfig {
  return { file, text: textOf(file) };
}

/**
 * Throws a `ConfigError` if the edited text is no valid configuration. Mistakes of the text before the edit are reported
 * first, because their positions match the file.
 */
export function checkEdited({ file, text }: OpenConfig, edited: string): void {
  try {
    checkFile(edited, file);
  } catch (error) {
    if (text !== undefined && text.trim() !== '' && text !== edited) checkUnlessEmpty(text, file);
    throw error;
  }
}

/**
 * Writes the edited text completely or not at all. An existing file keeps its mode, and a symbolic link stays a link. Only
 * the owner can read a new file, because arguments can be secrets.
 *
 * Throws a `ConfigError` if the text is no valid configuration, or if the file was changed since it was opened.
 */
export function saveConfig(open: OpenConfig, edited: string): void {
  const { file, text } = open;
  checkEdited(open, edited);
  if (textOf(file) !== text) throw changedMeanwhile(file);
  try {
    if (text === undefined) {
      if (!createFileSync(file, edited, { flush: true })) throw changedMeanwhile(file);
      return;
    }
    const target = realpathSync(file);
    const mode = statSync(target).mode & 0o777;
    replaceFileSync(target, edited, { mode, flush: true });
    // The mask of this process may have removed permissions.
    chmodSync(target, mode);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw cannotWrite(file, cause);
  }
}

/** Makes the error for a file that cannot be written. `cause` is the error of the write. */
export function cannotWrite(file: string, cause: unknown): ConfigError {
  const { reason, hint } = systemFault(cause);
  const problem = {
    message: `the file cannot be written: ${reason}`,
    hint: `${hint}, or name another file with --config FILE`,
  };
  return new ConfigError('config-unreadable', file, [problem], { cause });
}

export function changedMeanwhile(file: string): ConfigError {
  if (!existsSync(file) && lstatSync(file, { throwIfNoEntry: false }) !== undefined) {
    const problem = {
      message: 'the file is a symbolic link that leads nowhere, so nothing was written',
      hint: 'create the file that it should lead to, or remove the link',
    };
    return new ConfigError('config-unreadable', file, [problem]);
  }
  const problem = {
    message: 'the file was changed by another program meanwhile, so nothing was written',
    hint: 'run the command again',
  };
  return new ConfigError('config-changed', file, [problem]);
}

function textOf(file: string): string | undefined {
  try {
    return readConfigText(file);
  } catch (error) {
    if (error instanceof ConfigError && error.code === 'config-not-found') return undefined;
    throw error;
  }
}

/** Checks the text before an edit. A file without servers is accepted, because the edit may add the first server. */
function checkUnlessEmpty(text: string, file: string): void {
  try {
    checkFile(text, file);
  } catch (error) {
    if (error instanceof ConfigError && error.message.includes('there are no servers')) return;
    throw error;
  }
}
