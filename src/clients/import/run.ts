import { expand, namesIn, type Variables } from '../../config/resolve/expand.js';
import { ServerFault } from '../../config/resolve/server-fault.js';

/** What a server runs. All texts are in the notation of the configuration: `${NAME}` refers to a variable. */
export interface Run {
  readonly program: { readonly package: string; readonly version?: string } | { readonly command: string };
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A text that stands for itself, in the notation of the configuration. */
export function literal(text: string): string {
  return text.replaceAll('${', () => '$${');
}

/** The literal value of a text; `undefined` if it refers to a variable. */
export function literalIn(text: string): string | undefined {
  return namesIn([text]).length > 0 ? undefined : text.replaceAll('$${', () => '${');
}

/**
 * An identity: equal for two entries that run the same program with the same arguments and variables. The
 * version of a package does not count. The text contains secrets: it must stay in memory.
 */
export function identityOfRun({ program, args, env, cwd }: Run, variables: Variables): string {
  const name = 'package' in program ? ['package', program.package] : ['command', resolved(program.command, variables)];
  const sorted = Object.entries(env).sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([
    name,
    args.map((arg) => resolved(arg, variables)),
    sorted.map(([key, value]) => [key, resolved(value, variables)]),
    args.some(isRelative) || ('command' in program && isRelative(program.command)) ? (cwd ?? '') : '',
  ]);
}

/** Whether an argument is a path that depends on the working folder. */
export function isRelative(arg: string): boolean {
  return /^\.{1,2}(?:[\\/]|$)/.test(arg) || /^[\w.-]+(?:[\\/][\w.-]+)*\.(?:[cm]?[jt]s|py|sh|rb)$/.test(arg);
}

function resolved(text: string, variables: Variables): string {
  try {
    // Two texts that name a secret are the same.
    return expand(text, variables, (name) => `\${secret:${name}}`);
  } catch (error) {
    // A variable that is not set: two texts that name it are the same.
    if (error instanceof ServerFault) return text;
    throw error;
  }
}
