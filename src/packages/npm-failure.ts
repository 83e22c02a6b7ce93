import { ERROR_SIGNS } from '../errors/error-signs.js';

/** Why npm failed, in one line, and what a person can do about it. */
export interface NpmFailure {
  /** Begins with the error code of npm, such as `E404`, if there is one. */
  readonly message: string;
  /** The next step; absent if only npm's own output tells. */
  readonly hint?: string;
}

/** Explains a failed npm by the lines that it wrote to stderr. */
export function explainNpmFailure(code: number | null, lines: readonly string[]): NpmFailure {
  const said = lines.map((line) => line.replace(/^npm (?:error|ERR!) ?/i, '').trim()).filter(Boolean);
  const errorCode = said.find((line) => line.startsWith('code '))?.slice('code '.length);
  const cause = CAUSES.find(({ codes }) => errorCode !== undefined && codes.test(errorCode));
  if (cause !== undefined) return { message: `${errorCode}: ${cause.describe(said)}`, hint: cause.hint };
  const first = said.find((line) => !/^(?:code|syscall|errno|path|notarget) /.test(line));
  const parts = [errorCode, first?.slice(0, MAX_REASON_CHARACTERS)].filter((part) => part !== undefined);
  return { message: parts.length === 0 ? `npm ended with code ${code}` : parts.join(': ') };
}

const MAX_REASON_CHARACTERS = 300;

interface Cause {
  readonly codes: RegExp;
  readonly describe: (said: readonly string[]) => string;
  readonly hint: string;
}

const CAUSES: readonly Cause[] = [
  {
    codes: /^E404$/,
    describe: (said) => {
      const name = quoted(said, /'([^']+?)(?:@\*)?' (?:could not be found|is not in)/);
      return `the registry has no package${name}, or hides it from you`;
    },
    hint: 'correct the name; if the package is private, set the registry of its scope in your .npmrc and run `npm login`',
  },
  {
    codes: /^(?:ETARGET|ENOVERSIONS)$/,
    describe: (said) =>
      `the registry has no version${quoted(said, /No (?:matching version|versions).* for (\S+?)\.?$/)}`,
    hint: 'correct the version; `npm view NAME versions` lists those that exist',
  },
  {
    codes: /^(?:E401|E403|ENEEDAUTH|EOTP)$/,
    describe: () => 'the registry refused access',
    hint: 'run `npm login`, or correct the token in your .npmrc; if the registry blocks this package, ask its operator',
  },
  {
    codes: ERROR_SIGNS.certificate.npmCode,
    describe: () => 'npm does not trust the certificate of the registry',
    hint: 'set NODE_EXTRA_CA_CERTS, or `cafile` in your .npmrc, to the file of your certificate authority',
  },
  {
    codes: ERROR_SIGNS.network.npmCode,
    describe: () => 'the registry cannot be reached',
    hint: 'check the network connection, and `registry` and `proxy` in your .npmrc',
  },
  {
    codes: /^E(?:429|5\d\d)$/,
    describe: () => 'the registry has a problem',
    hint: 'try again later',
  },
  {
    codes: /^ENOSPC$/,
    describe: () => 'the disk is full',
    hint: 'free some space',
  },
];

/** The name that npm complains about, as ` \`NAME\``. It can be a dependency of the package. */
function quoted(said: readonly string[], pattern: RegExp): string {
  for (const line of said) {
    const [, name] = pattern.exec(line.slice(0, MAX_REASON_CHARACTERS)) ?? [];
    if (name !== undefined) return ` \`${name}\``;
  }
  return '';
}
