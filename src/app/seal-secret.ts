import { keepToken, newToken, readToken } from '../files/token-file.js';
import type { Logger } from '../observe/logger.js';
import { sealFile } from './user-files.js';

/** What the ids of tasks are sealed with, and what is kept of the configuration and of servers. */
export interface SealSecret {
  readonly secret: string;
  /** Whether the next run will have the same one, as far as anybody can tell. */
  readonly isLasting: boolean;
  /** To be called once something was sealed that a client may keep: from then on the secret has to outlive us. */
  readonly onSealed: () => void;
}

/** The secret of this user, or a new one, which is written down when it is first used. */
export async function readSealSecret(logger: Logger): Promise<SealSecret> {
  const warn = (err: unknown) => logger.warn({ err }, 'ids of tasks will not be good after a restart');
  let isLasting = true;
  const kept = await readToken(sealFile()).catch((err: unknown) => {
    isLasting = false;
    warn(err);
  });
  const secret = kept ?? newToken();
  const keep = () => void keepToken(sealFile(), secret).catch(warn);
  return { secret, isLasting, onSealed: kept === undefined ? once(keep) : () => {} };
}

function once(run: () => void): () => void {
  let hasRun = false;
  return () => {
    if (!hasRun) run();
    hasRun = true;
  };
}
