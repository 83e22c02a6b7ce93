/** The facts about the machine, the user and this process that checks depend on. Tests pass the facts of other machines. */
export interface Machine {
  readonly platform: 'darwin' | 'linux' | 'win32';
  readonly home: string;
  readonly cwd: string;
  /** The root folder of the system: `/`, or the system drive on Windows. */
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user id that owns files; `undefined` on Windows, where files have neither owners nor modes of this kind. */
  readonly uid: number | undefined;
  readonly node: {
    readonly version: string;
    readonly path: string;
    /** Whether this Node is part of a desktop program (Electron). */
    readonly isElectron: boolean;
  };
  /** The path of the running Trunkline program, with symbolic links resolved. */
  readonly program: string;
  readonly version: string;
  /** Whether checks must not use the network (`--offline`). */
  readonly isOffline: boolean;
}

/** The character between two folders of a PATH on this system. */
export function pathSeparator({ platform }: Pick<Machine, 'platform'>): string {
  return platform === 'win32' ? ';' : ':';
}

/** The value of an environment variable. Windows ignores the case of the name. */
export function variableOf({ env, platform }: Pick<Machine, 'env' | 'platform'>, name: string): string | undefined {
  if (platform !== 'win32') return env[name];
  const found = Object.keys(env).find((each) => each.toUpperCase() === name.toUpperCase());
  return found === undefined ? undefined : env[found];
}
