/** The machine, the user and the process, as far as checks depend on them. Tests describe another one. */
export interface Machine {
  readonly platform: 'darwin' | 'linux' | 'win32';
  readonly home: string;
  readonly cwd: string;
  /** The folder in which the files of the system are: `/`, or the drive of Windows. */
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The id of the user; `undefined` on Windows, which has neither owners nor modes. */
  readonly uid: number | undefined;
  readonly node: {
    readonly version: string;
    readonly path: string;
    /** Whether it is the Node inside of a desktop program. */
    readonly isElectron: boolean;
  };
  /** The program of Trunkline that runs now, with links resolved. */
  readonly program: string;
  readonly version: string;
  /** Whether nothing may use the network. */
  readonly isOffline: boolean;
}

/** Separates the folders of a PATH on this system. */
export function pathSeparator({ platform }: Pick<Machine, 'platform'>): string {
  return platform === 'win32' ? ';' : ':';
}

/** The value of a variable, whose name has any case on Windows. */
export function variableOf({ env, platform }: Pick<Machine, 'env' | 'platform'>, name: string): string | undefined {
  if (platform !== 'win32') return env[name];
  const found = Object.keys(env).find((each) => each.toUpperCase() === name.toUpperCase());
  return found === undefined ? undefined : env[found];
}
