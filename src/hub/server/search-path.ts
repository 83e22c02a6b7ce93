/**
 * Adds the folders of another search path to this one, at its end. Only absolute folders are taken: where a relative one
 * leads depends on the working folder of the process that named it.
 */
export function withFolders(path: string, other: string, { delimiter, isAbsolute }: PathRules): string {
  const folders = path.split(delimiter);
  const known = new Set(folders);
  for (const folder of other.split(delimiter)) {
    if (!isAbsolute(folder) || known.has(folder)) continue;
    known.add(folder);
    folders.push(folder);
  }
  return folders.filter((folder) => folder !== '').join(delimiter);
}

/** The rules of the system, as in `node:path`. */
export interface PathRules {
  readonly delimiter: string;
  readonly isAbsolute: (path: string) => boolean;
}
