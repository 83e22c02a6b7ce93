import type { FoundServer } from '../files/found-server.js';
import { literal } from './run.js';

/** Why a server cannot be taken over, as a sentence without values. */
export class CannotImport extends Error {
  override readonly name = 'CannotImport';
}

/** The known values of client variables, such as the project folder. */
export interface Surroundings {
  readonly platform: 'darwin' | 'linux' | 'win32';
  readonly home: string;
  /** The folder of the project, for entries of one. */
  readonly project: string | undefined;
}

/**
 * A text of a client's file in the notation of the configuration: its variables become ours, and a literal `${` is escaped.
 * Throws `CannotImport` for a variable that only the client can resolve.
 */
export function translate(text: string, notation: FoundServer['variables'], surroundings: Surroundings): string {
  switch (notation) {
    case 'none':
      return literal(text);
    case 'claude-code':
      return text.replace(BRACES_WITH_DEFAULT, shellReference);
    case 'gemini':
      return translateGemini(text, surroundings);
    case 'vscode':
    case 'cursor':
      return text.replace(EDITOR_REFERENCE, (all, body?: string) => {
        return body === undefined ? literal(all) : editorReference(body, surroundings);
      });
  }
}

const BRACES_WITH_DEFAULT = /\$\{(?:([A-Za-z_]\w*)(?::-([^}]*))?\})?/g;
const EDITOR_REFERENCE = /\$\{(?:([^}]*)\})?/g;
const GEMINI_REFERENCE = /\$\{(?:([A-Za-z_]\w*)(?::-([^}]*))?\})?|\$([A-Za-z_]\w*)/g;
const WINDOWS_REFERENCE = /%([A-Za-z_]\w*)%/g;

function shellReference(all: string, name?: string, fallback?: string): string {
  if (name === undefined) return literal(all);
  if (fallback?.includes('{')) throw new CannotImport(`the default of \${${name}} contains a brace`);
  return fallback === undefined ? `\${${name}}` : `\${${name}:-${fallback}}`;
}

function translateGemini(text: string, { platform }: Surroundings): string {
  const translated = text.replace(GEMINI_REFERENCE, (all, name?: string, fallback?: string, bare?: string) => {
    return bare === undefined ? shellReference(all, name, fallback) : `\${${bare}}`;
  });
  return platform === 'win32' ? translated.replace(WINDOWS_REFERENCE, (_, name: string) => `\${${name}}`) : translated;
}

function editorReference(body: string, { platform, home, project }: Surroundings): string {
  const [, kind = '', name = ''] = /^(?:(env|input):)(.*)$/.exec(body) ?? [];
  if (kind === 'env' && /^[A-Za-z_]\w*$/.test(name)) return `\${${name}}`;
  // The editor asks for it; here it is a variable that the user sets.
  if (kind === 'input' && name !== '') return `\${${variableName(name)}}`;
  switch (body) {
    case 'userHome':
      return literal(home);
    case 'pathSeparator':
    case '/':
      return platform === 'win32' ? '\\' : '/';
    case 'workspaceFolder':
    case 'workspaceFolderBasename':
      if (project === undefined) throw new CannotImport('it refers to the folder that is open in the editor');
      return literal(body === 'workspaceFolder' ? project : (project.split(/[\\/]/).at(-1) ?? ''));
    default:
      throw new CannotImport(
        /^[\w:.-]{1,40}$/.test(body)
          ? `it uses \${${body}}, which only its client can resolve`
          : 'it uses a variable that only its client can resolve',
      );
  }
}

/** A valid name of a variable that is similar to this text. */
export function variableName(text: string): string {
  const name = text
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .toUpperCase();
  return /^[A-Z]/.test(name) ? name : `VALUE_${name}`;
}
