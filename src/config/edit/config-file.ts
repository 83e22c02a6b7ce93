import { chmodSync, existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { errorCode } from '../../errors/error-text.js';
import { createFileSync, replaceFileSync } from '../../files/whole-file.js';
import { checkFile } from '../file/check-file.js';
import { ConfigError } from '../file/config-error.js';
import { readConfigText } from '../file/find-config.js';

/** A configuration file as it was read for an edit. */
export interface OpenConfig {
  /** Absolute. */
  readonly file: string;
  /** Undefined if there is no file yet. */
  readonly text: string | undefined;
}

/** Reads the configuration file for an edit. Throws a `ConfigError` if there is one that cannot be read. */
export function openConfig(file: string): OpenConfig {
  return { file, text: textOf(file) };
}

/**
 * Throws a `ConfigError` if the edited text is no valid configuration. If the text had mistakes before, those are reported,
 * because their positions are those of the file.
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
 * Writes the edited text completely or not at all. An existing file keeps its mode, and the target of a symbolic link is
 * replaced, not the link; a new one is for its owner alone, because arguments can be secrets.
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

export function cannotWrite(file: string, cause: unknown): ConfigError {
  const problem = {
    message: `the file cannot be written (${errorCode(cause) ?? 'unknown'})`,
    hint: 'check the permissions of the file and of its folder, or name another file with --config FILE',
  };
  return new ConfigError('config-unreadable', file, [problem], { cause });
}

export function changedMeanwhile(file: string): ConfigError {
  const problem = leadsNowhere(file)
    ? {
        message: 'the file is a symbolic link that leads nowhere, so nothing was written',
        hint: 'create the file that it should lead to, or remove the link',
      }
    : {
        message: 'the file was changed by another program meanwhile, so nothing was written',
        hint: 'run the command again',
      };
  return new ConfigError('config-unreadable', file, [problem]);
}

function leadsNowhere(file: string): boolean {
  return !existsSync(file) && lstatSync(file, { throwIfNoEntry: false }) !== undefined;
}

function textOf(file: string): string | undefined {
  try {
    return readConfigText(file);
  } catch (error) {
    if (error instanceof ConfigError && error.code === 'config-not-found') return undefined;
    throw error;
  }
}

/** A file without servers is a mistake that adding one corrects. */
function checkUnlessEmpty(text: string, file: string): void {
  try {
    checkFile(text, file);
  } catch (error) {
    if (error instanceof ConfigError && error.message.includes('there are no servers')) return;
    throw error;
  }
}
